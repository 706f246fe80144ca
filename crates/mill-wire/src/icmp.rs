//! What messages of ICMP and ICMPv6 have in common: their first eight bytes.
//!
//! ```text
//! | Type, 1 | Code, 1 | Checksum, 2 | by type, 4 | echoed bytes, or the packet that caused an error |
//! ```

use crate::Malformed;

/// Bytes before the echoed bytes or the quoted packet.
pub(crate) const HEADER_BYTES: usize = 8;

/// Type, code, and what depends on the type. The checksum is not part of it.
pub(crate) struct Head {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) rest: [u8; 4],
}

impl Head {
    pub(crate) fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let &[kind, code, _, _, a, b, c, d] = message
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        let rest = [a, b, c, d];
        Ok(Self { kind, code, rest })
    }

    /// The two numbers of an echo: identifier and sequence number.
    pub(crate) const fn pair(&self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// Writes a header with a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than `HEADER_BYTES`.
    pub(crate) fn emit(&self, into: &mut [u8]) -> usize {
        let bytes = into
            .first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the message");
        bytes[..4].copy_from_slice(&[self.kind, self.code, 0, 0]);
        bytes[4..].copy_from_slice(&self.rest);
        HEADER_BYTES
    }
}

/// Two numbers as the four bytes that depend on the type.
pub(crate) const fn of_pair(high: u16, low: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    [a, b, c, d]
}
