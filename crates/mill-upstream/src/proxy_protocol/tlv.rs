//! Fields of version 2: one byte of type, two of length, the value.

use super::ProxyProtocolFault;
use super::crc32c::crc32c;

/// The fields behind the addresses. All of them are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlvs<'a> {
    bytes: &'a [u8],
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    pub kind: u8,
    pub value: &'a [u8],
}

/// What `$proxy_protocol_tlv_NAME` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvName {
    Field(u8),
    /// A field inside the one about TLS.
    Ssl(u8),
    /// Whether the client's certificate was verified: 0 if so, or if there was none to verify.
    SslVerify,
}

/// What a name stands for in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvValue<'a> {
    Bytes(&'a [u8]),
    Number(u32),
}

impl TlvName {
    /// nginx's names: `alpn`, `authority`, `unique_id`, `ssl`, `netns`, `0x..`; with `ssl_` before them `version`, `cn`,
    /// `cipher`, `sig_alg`, `key_alg`, `verify` and `0x..`.
    pub fn parse(name: &[u8]) -> Option<Self> {
        if let Some(name) = name.strip_prefix(b"ssl_") {
            return match name {
                b"verify" => Some(Self::SslVerify),
                _ => Some(Self::Ssl(kind_of(name, &SSL_NAMES)?)),
            };
        }
        Some(Self::Field(kind_of(name, &NAMES)?))
    }
}

fn kind_of(name: &[u8], names: &[(&[u8], u8)]) -> Option<u8> {
    if let Some(digits) = name.strip_prefix(b"0x") {
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
        return u8::from_str_radix(digits, 16).ok();
    }
    let known = names.iter().find(|(known, _)| *known == name)?;
    Some(known.1)
}

const NAMES: [(&[u8], u8); 5] = [
    (b"alpn", 0x01),
    (b"authority", 0x02),
    (b"unique_id", 0x05),
    (b"ssl", SSL),
    (b"netns", 0x30),
];

const SSL_NAMES: [(&[u8], u8); 5] = [
    (b"version", 0x21),
    (b"cn", 0x22),
    (b"cipher", 0x23),
    (b"sig_alg", 0x24),
    (b"key_alg", 0x25),
];

impl<'a> Tlvs<'a> {
    pub(super) const NONE: Self = Self { bytes: &[] };

    /// Checks that the fields are whole, and the checksum if there is one. `header` is the whole header, which ends with
    /// `bytes`.
    pub(super) fn parse(bytes: &'a [u8], header: &'a [u8]) -> Result<Self, ProxyProtocolFault> {
        let mut rest = bytes;
        let mut checksum_at = None;
        while !rest.is_empty() {
            let (field, after) = split(rest).ok_or(ProxyProtocolFault::Tlv)?;
            if field.kind == CRC32C {
                let at = header.len() - after.len() - CRC32C_LEN;
                if field.value.len() != CRC32C_LEN || checksum_at.replace(at).is_some() {
                    return Err(ProxyProtocolFault::Checksum);
                }
            }
            rest = after;
        }
        match checksum_at {
            Some(at) if !has_checksum(header, at) => Err(ProxyProtocolFault::Checksum),
            _ => Ok(Self { bytes }),
        }
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = Tlv<'a>> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (field, after) = split(rest)?;
            rest = after;
            Some(field)
        })
    }

    /// The first field of a name.
    pub fn find(&self, name: TlvName) -> Option<TlvValue<'a>> {
        match name {
            TlvName::Field(kind) => self.first(kind).map(TlvValue::Bytes),
            TlvName::Ssl(kind) => {
                let fields = Self {
                    bytes: self.ssl()?.1,
                };
                fields.first(kind).map(TlvValue::Bytes)
            }
            TlvName::SslVerify => Some(TlvValue::Number(self.ssl()?.0)),
        }
    }

    fn first(&self, kind: u8) -> Option<&'a [u8]> {
        let mut fields = self.iter();
        Some(fields.find(|field| field.kind == kind)?.value)
    }

    /// What the field about TLS says of the client's certificate, and the fields inside it. (Its first byte says what
    /// the client did: TLS, a certificate on this connection, one on this session.)
    fn ssl(&self) -> Option<(u32, &'a [u8])> {
        let (_, rest) = self.first(SSL)?.split_first()?;
        let (verify, fields) = rest.split_first_chunk()?;
        Some((u32::from_be_bytes(*verify), fields))
    }
}

fn split(bytes: &[u8]) -> Option<(Tlv<'_>, &[u8])> {
    let ([kind, high, low], rest) = bytes.split_first_chunk()?;
    let len = u16::from_be_bytes([*high, *low]);
    let (value, rest) = rest.split_at_checked(len.into())?;
    Some((Tlv { kind: *kind, value }, rest))
}

/// Whether the checksum at `at` is that of the header with zeros in its place.
fn has_checksum(header: &[u8], at: usize) -> bool {
    let (before, rest) = header.split_at(at);
    let Some((found, after)) = rest.split_first_chunk::<CRC32C_LEN>() else {
        return false;
    };
    crc32c(&[before, &[0; CRC32C_LEN], after]) == u32::from_be_bytes(*found)
}

/// The checksum's type, and bytes of its value.
pub(super) const CRC32C: u8 = 0x03;
pub(super) const CRC32C_LEN: usize = 4;
const SSL: u8 = 0x20;
