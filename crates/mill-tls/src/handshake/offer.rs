//! What a client sends with its first flight (0-RTT, RFC 8446 2.3), and what the server makes of it.

use super::{Asked, take};
use crate::facts::EarlyData;
use crate::record::{ContentType, HEADER_BYTES, PLAIN_BYTES_MAX, RecordHeader};
use rustls::client::ClientConnectionData;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

/// A request that goes with the first flight, if the session allows it.
#[derive(Debug, Default)]
pub(super) struct Offer {
    plain: Vec<u8>,
    /// Bytes of it that went with the first flight; a session bounds them.
    sent: usize,
    is_taken: bool,
}

impl Offer {
    pub(super) fn new(plain: Vec<u8>) -> Self {
        Self {
            plain,
            ..Self::default()
        }
    }

    /// As [`take`], with early data behind the ClientHello.
    pub(super) fn take(
        &mut self,
        status: UnbufferedStatus<'_, '_, ClientConnectionData>,
        out: &mut Vec<u8>,
    ) -> (usize, Asked) {
        match status.state {
            Ok(ConnectionState::TransmitTlsData(mut data)) => {
                if self.sent == 0
                    && let Some(mut early) = data.may_encrypt_early_data()
                {
                    self.send(out, |plain, room| early.encrypt(plain, room).unwrap_or(0));
                }
                data.done();
                (status.discard, Asked::Next)
            }
            _ => take(status, out),
        }
    }

    /// `encrypt` seals plaintext into the room behind `out`, and returns how much of that it has filled.
    fn send(&mut self, out: &mut Vec<u8>, encrypt: impl FnOnce(&[u8], &mut [u8]) -> usize) {
        let start = out.len();
        // A call without enough room would use up what the session allows.
        let records = self.plain.len() / PLAIN_BYTES_MAX + 1;
        out.resize(start + self.plain.len() + records * RECORD_ROOM, 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let written = encrypt(&self.plain, room);
        out.truncate(start + written);
        let sealed = out.get(start..).unwrap_or_default();
        self.sent = records_of(sealed)
            .map(|header| header.len.saturating_sub(SEAL_BYTES))
            .sum();
    }

    /// Looks at a later flight of ours. rustls tells only clients with buffers whether early data was taken; but then, and
    /// only then, EndOfEarlyData goes out, which is the one message as short (RFC 8446 4.5).
    pub(super) fn on_flight(&mut self, flight: &[u8]) {
        self.is_taken |= records_of(flight).any(|header| {
            header.content_type == ContentType::ApplicationData
                && header.len == END_OF_EARLY_DATA + SEAL_BYTES
        });
    }

    /// Whether the first flight has gone out, with a part of it.
    pub(super) fn is_sent(&self) -> bool {
        self.sent > 0
    }

    /// What became of it, and what is still to be sent behind the handshake.
    pub(super) fn end(mut self) -> (EarlyData, Vec<u8>) {
        match (self.is_sent(), self.is_taken) {
            (false, _) => (EarlyData::None, self.plain),
            (true, false) => (EarlyData::Refused, self.plain),
            (true, true) => {
                let rest = self.plain.split_off(self.sent.min(self.plain.len()));
                (EarlyData::Taken, rest)
            }
        }
    }
}

/// The headers of records that stand one behind the other.
fn records_of(mut bytes: &[u8]) -> impl Iterator<Item = RecordHeader> {
    std::iter::from_fn(move || {
        let header = RecordHeader::parse(bytes)?.ok()?;
        bytes = bytes.get(HEADER_BYTES + header.len..).unwrap_or_default();
        Some(header)
    })
}

/// A header, a content type and a tag, with something to spare.
const RECORD_ROOM: usize = 64;

/// The content type and the tag of each cipher of TLS 1.3.
const SEAL_BYTES: usize = 1 + 16;

/// A message without content.
const END_OF_EARLY_DATA: usize = 4;
