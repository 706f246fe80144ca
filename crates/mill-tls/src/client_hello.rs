//! What a server looks at in a ClientHello before it chooses how to answer (RFC 8446 4.1.2).

use crate::record::{ContentType, HEADER_BYTES, RecordHeader};

/// A ClientHello; rustls reads it once more, and judges it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The host name of `server_name` (RFC 6066 3), in lower case.
    pub server_name: Option<Box<str>>,
    /// Protocols of ALPN (RFC 7301), in the client's order.
    pub alpn: Vec<Box<[u8]>>,
    /// The highest version that is offered: `supported_versions` (RFC 8446 4.2.1), else the message's own.
    pub version: u16,
    /// Numbers of cipher suites, without those that only keep servers from relying on the list (GREASE, RFC 8701).
    pub ciphers: Vec<u16>,
    /// Numbers of groups for the exchange of keys (`supported_groups`), likewise.
    pub groups: Vec<u16>,
    /// Early data follows, if the server takes it (RFC 8446 4.2.10).
    pub offers_early_data: bool,
    /// An extension is not there that TLS 1.3 wants beside those that are (RFC 8446 9.2).
    pub lacks_extension: bool,
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
        let version = rest.number16()?;
        rest.take(32)?; // random
        rest.vector8()?; // session id
        let mut hello = Self {
            version: u16::try_from(version).ok()?,
            ciphers: numbers(rest.vector16()?),
            ..Self::default()
        };
        rest.vector8()?; // compression methods
        let mut kinds = [false; 4];
        if rest.0.is_empty() {
            return Some(hello);
        }
        let mut extensions = Reader(rest.vector16()?);
        while !extensions.0.is_empty() {
            let kind = extensions.number16()?;
            let content = extensions.vector16()?;
            for (is_there, number) in kinds.iter_mut().zip(NEEDED) {
                *is_there |= kind == number;
            }
            match kind {
                SERVER_NAME => hello.server_name = server_name(content),
                SUPPORTED_GROUPS => {
                    hello.groups = Reader(content).vector16().map(numbers).unwrap_or_default();
                }
                EARLY_DATA => hello.offers_early_data = true,
                ALPN => hello.alpn = protocols(content).unwrap_or_default(),
                SUPPORTED_VERSIONS => {
                    let offered = Reader(content).vector8().map(numbers).unwrap_or_default();
                    let known = offered.into_iter().filter(|version| version >> 8 == 3);
                    hello.version = known.max().unwrap_or(hello.version);
                }
                _ => {}
            }
        }
        let [groups, shares, signatures, sessions] = kinds;
        hello.lacks_extension = groups != shares || !(sessions || signatures && groups);
        Some(hello)
    }
}

/// Numbers of two bytes each.
fn numbers(content: &[u8]) -> Vec<u16> {
    let (pairs, _) = content.as_chunks::<2>();
    let all = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    all.filter(|number| !is_grease(*number)).collect()
}

/// RFC 8701: `0x?a?a` with equal bytes.
fn is_grease(number: u16) -> bool {
    let [high, low] = number.to_be_bytes();
    high == low && low & 0x0f == 0x0a
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

/// The names of protocols.
fn protocols(content: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let mut names = Reader(Reader(content).vector16()?);
    let mut all = Vec::new();
    while !names.0.is_empty() {
        all.push(names.vector8()?.into());
    }
    Some(all)
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
const SUPPORTED_GROUPS: usize = 10;
const EARLY_DATA: usize = 42;
const ALPN: usize = 16;
const SUPPORTED_VERSIONS: usize = 43;

/// `supported_groups`, `key_share`, `signature_algorithms`, `pre_shared_key`: which of them go together says RFC 8446 9.2.
const NEEDED: [usize; 4] = [SUPPORTED_GROUPS, 51, 13, 41];

/// With a post-quantum key share a ClientHello has about 1800 bytes; certificates never stand in it.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with this extension, in records of `piece` bytes.
    fn hello(extension: &[u8], piece: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 4, 0x1a, 0x1a, 0x13, 1, 1, 0]);
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
        let expected = ClientHello {
            ciphers: vec![0x1301],
            alpn: vec![b"h2".to_vec().into_boxed_slice()],
            version: 0x0303,
            lacks_extension: true,
            ..ClientHello::default()
        };
        assert_eq!(ClientHello::read(&bytes), Beginning::Hello(expected));
    }

    #[test]
    fn offers_are_found_without_grease() {
        let bytes = hello(b"\0\x0a\0\x08\0\x06\x0a\x0a\0\x1d\0\x17", 1000);
        let Beginning::Hello(hello) = ClientHello::read(&bytes) else {
            panic!("a whole ClientHello");
        };
        assert_eq!(
            (hello.ciphers, hello.groups),
            (vec![0x1301], vec![0x1d, 0x17])
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
