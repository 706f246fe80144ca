//! Alerts that rustls leaves out, or has another one for: of the first flight, which is looked at before rustls sees it, and of errors
//! for which rustls says nothing.

use crate::alert::{Alert, AlertDescription};
use crate::client_hello::ClientHello;
use crate::record::{ContentType, HEADER_BYTES, PLAIN_BYTES_MAX, RecordHeader};
use rustls::{Error, InvalidMessage};

/// What is wrong with the records of a ClientHello, as far as their headers are there (RFC 8446 5.1).
pub(super) fn of_records(bytes: &[u8]) -> Option<AlertDescription> {
    let mut at = 0;
    loop {
        let header = match RecordHeader::parse(bytes.get(at..)?)? {
            Ok(header) => header,
            Err(error) => return Some(error.into()),
        };
        match header.content_type {
            ContentType::Handshake if header.len > PLAIN_BYTES_MAX => {
                return Some(AlertDescription::RecordOverflow);
            }
            ContentType::Handshake if header.len > 0 => {}
            // A client that gives up needs no answer; rustls reads why.
            ContentType::Alert if is_end(bytes.get(at + HEADER_BYTES..)?) => return None,
            _ => return Some(AlertDescription::UnexpectedMessage),
        }
        at += HEADER_BYTES + header.len;
    }
}

/// A fatal alert, or the end of what the client sends; also as long as it is not there.
fn is_end(body: &[u8]) -> bool {
    let alert = body.get(..2).and_then(Alert::parse);
    alert.is_none_or(|alert| alert.is_fatal || alert == Alert::CLOSE_NOTIFY)
}

/// What is wrong with a ClientHello, for a server that speaks TLS 1.3 or not.
pub(super) fn of_hello(hello: &ClientHello, has_tls13: bool) -> Option<AlertDescription> {
    let is_older = hello.version < TLS13;
    if !has_tls13 {
        return None;
    }
    if is_older && hello.ciphers.contains(&FALLBACK) {
        return Some(AlertDescription::InappropriateFallback);
    }
    (!is_older && hello.lacks_extension).then_some(AlertDescription::MissingExtension)
}

/// The alert for an error; `None`: the peer has said itself that it ends.
pub(super) const fn of_error(error: &Error) -> Option<AlertDescription> {
    match error {
        Error::AlertReceived(_) => None,
        Error::InvalidMessage(InvalidMessage::MessageTooLarge) => {
            Some(AlertDescription::RecordOverflow)
        }
        Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge) => {
            Some(AlertDescription::IllegalParameter)
        }
        Error::InvalidMessage(_) => Some(AlertDescription::DecodeError),
        Error::PeerMisbehaved(_) => Some(AlertDescription::UnexpectedMessage),
        _ => Some(AlertDescription::InternalError),
    }
}

/// A fatal alert in clear.
pub(super) fn record(description: AlertDescription) -> [u8; HEADER_BYTES + 2] {
    let header = RecordHeader {
        content_type: ContentType::Alert,
        len: 2,
    };
    let [level, description] = Alert::fatal(description).emit();
    let [kind, major, minor, high, low] = header.emit();
    [kind, major, minor, high, low, level, description]
}

/// Whether a flight of ours holds sealed records, or those that seal begin behind it.
pub(super) fn begins_sealing(mut flight: &[u8]) -> bool {
    while let Some(Ok(header)) = RecordHeader::parse(flight) {
        if matches!(
            header.content_type,
            ContentType::ChangeCipherSpec | ContentType::ApplicationData
        ) {
            return true;
        }
        flight = flight.get(HEADER_BYTES + header.len..).unwrap_or_default();
    }
    false
}

const TLS13: u16 = 0x0304;

/// TLS_FALLBACK_SCSV (RFC 7507): the client would speak a higher version, which a server that has it must say.
const FALLBACK: u16 = 0x5600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_first_flight_are_refused_by_their_headers() {
        use AlertDescription::{ProtocolVersion, RecordOverflow, UnexpectedMessage};
        let good = b"\x16\x03\x01\x00\x01\x01";
        for (behind, expected) in [
            (&b""[..], None),
            (b"\x16\x03\x01\x00", None),
            (b"\x16\x03\x01\x40\x00", None),
            (b"\x16\x03\x01\x40\x01", Some(RecordOverflow)),
            (b"\x16\x03\x01\x00\x00", Some(UnexpectedMessage)),
            (b"\x16\x05\x05\x00\x01", Some(ProtocolVersion)),
            (b"\x63\x03\x01\x00\x01", Some(UnexpectedMessage)),
            (b"\x14\x03\x01\x00\x01", Some(UnexpectedMessage)),
            (b"\x17\x03\x01\x00\x01", Some(UnexpectedMessage)),
            (b"\x15\x03\x01\x00\x02\x01\x5a", Some(UnexpectedMessage)),
            (b"\x15\x03\x01\x00\x02\x01", None),
            (b"\x15\x03\x01\x00\x02\x01\x00", None),
            (b"\x15\x03\x01\x00\x02\x02\x28", None),
        ] {
            let bytes = [&good[..], behind].concat();
            assert_eq!(of_records(&bytes), expected, "{behind:?}");
        }
    }
}
