//! What a server looks at in a ClientHello before it chooses how to answer (RFC 8446 4.1.2).

use crate::record::{ContentType, HEADER_BYTES, RecordHeader};

/// A ClientHello; rustls reads it once more, and judges it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The host name of `server_name` (RFC 6066 3), in lower case.
    pub server_name: Option<Box<str>>,
}

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// More bytes are needed: this many in all, at least.
    Incomplete(usize),
    /// A whole ClientHello, well formed as far as it is looked at.
    Hello(ClientHello),
    /// Not TLS, or not well formed. rustls finds the alert for it.
    Unknown,
}

impl ClientHello {
    /// Reads the records at the beginning of `bytes`: the message may lie in several.
    pub fn read(bytes: &[u8]) -> Beginning {
        let mut message = Vec::new();
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let header = match RecordHeader::parse(rest) {
                None => return Beginning::Incomplete(at + HEADER_BYTES),
                Some(Ok(header)) if header.content_type == ContentType::Handshake => header,
                Some(_) => return Beginning::Unknown,
            };
            at += HEADER_BYTES + header.len;
            let Some(body) = rest.get(HEADER_BYTES..HEADER_BYTES + header.len) else {
                return Beginning::Incomplete(at);
            };
            if body.is_empty() {
                return Beginning::Unknown;
            }
            message.extend_from_slice(body);
            if let Some([kind, length @ ..]) = message.first_chunk::<4>() {
                let [high, middle, low] = *length;
                let len = u32::from_be_bytes([0, high, middle, low]) as usize;
                if *kind != CLIENT_HELLO || len > HELLO_BYTES_MAX {
                    return Beginning::Unknown;
                }
                if let Some(body) = message.get(4..4 + len) {
                    return Self::parse(body).map_or(Beginning::Unknown, Beginning::Hello);
                }
            }
        }
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let mut rest = Reader(body);
        // Version and random.
        rest.take(2 + 32)?;
        rest.vector8()?; // session id
        rest.vector16()?; // cipher suites
        rest.vector8()?; // compression methods
        let mut hello = Self::default();
        if rest.0.is_empty() {
            return Some(hello);
        }
        let mut extensions = Reader(rest.vector16()?);
        while !extensions.0.is_empty() {
            let kind = extensions.number16()?;
            let content = extensions.vector16()?;
            if kind == SERVER_NAME {
                hello.server_name = server_name(content);
            }
        }
        Some(hello)
    }
}

/// The name of type host_name, the only type there is.
fn server_name(content: &[u8]) -> Option<Box<str>> {
    let mut names = Reader(Reader(content).vector16()?);
    let kind = names.take(1)?;
    let name = std::str::from_utf8(names.vector16()?).ok()?;
    let is_host =
        kind == [0] && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_host.then(|| name.to_ascii_lowercase().into_boxed_str())
}

/// The bytes that are left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<usize> {
        let bytes = self.take(2)?.first_chunk::<2>()?;
        Some(usize::from(u16::from_be_bytes(*bytes)))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = *self.take(1)?.first()?;
        self.take(usize::from(len))
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.number16()?;
        self.take(len)
    }
}

const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: usize = 0;

/// With a post-quantum key share a ClientHello has about 1800 bytes; certificates never stand in it.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with this extension, in records of `piece` bytes.
    fn hello(extension: &[u8], piece: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(extension.len()).unwrap().to_be_bytes());
        body.extend(extension);
        let mut message = vec![1, 0];
        message.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        message.extend(body);
        let mut records = Vec::new();
        for part in message.chunks(piece) {
            records.extend([22, 3, 1]);
            records.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            records.extend(part);
        }
        records
    }

    const NAME: &[u8] = b"\0\0\0\x0e\0\x0c\0\0\x09A.example";

    #[test]
    fn the_name_is_found_however_the_message_lies_in_records() {
        for piece in [1, 3, 40, 1000] {
            let bytes = hello(NAME, piece);
            let Beginning::Hello(hello) = ClientHello::read(&bytes) else {
                panic!("records of {piece} bytes");
            };
            assert_eq!(hello.server_name.as_deref(), Some("a.example"));
        }
    }

    #[test]
    fn every_beginning_of_a_message_asks_for_more() {
        let bytes = hello(NAME, 20);
        for len in 0..bytes.len() {
            match ClientHello::read(&bytes[..len]) {
                Beginning::Incomplete(needed) => assert!(needed > len && needed <= bytes.len()),
                other => panic!("{len}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_message_without_the_name_is_whole_as_well() {
        let bytes = hello(b"\0\x10\0\x05\0\x03\x02h2", 1000);
        assert_eq!(
            ClientHello::read(&bytes),
            Beginning::Hello(ClientHello::default())
        );
    }

    #[test]
    fn what_is_not_a_client_hello_is_left_to_the_handshake() {
        let cut = hello(b"\0\0\0\x0e\0\x0c\0\0\x0fA.example", 1000);
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"\x16\x03\x01\x00\x00",
            b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
            b"\x16\x03\x01\x00\x04\x01\xff\x00\x00",
            &cut[..],
        ] {
            match ClientHello::read(bytes) {
                Beginning::Unknown => {}
                Beginning::Hello(hello) => assert_eq!(hello.server_name, None),
                other @ Beginning::Incomplete(_) => panic!("{bytes:?}: {other:?}"),
            }
        }
    }
}
