//! Bytes that a part of a head may have: `http_uri_brange` and its like in `frang`.

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// Adds these bytes, both ends included.
    pub fn add(&mut self, first: u8, last: u8) {
        for byte in first..=last {
            if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
                *word |= 1 << (byte % 64);
            }
        }
    }

    pub fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte / 64));
        word.is_some_and(|word| word & (1 << (byte % 64)) != 0)
    }

    /// The first byte of a text that is not in the set.
    pub fn first_outside(&self, text: &[u8]) -> Option<u8> {
        let mut bytes = text.iter().copied();
        bytes.find(|&byte| !self.contains(byte))
    }
}

/// Which part of a head it is for; the names are Tempesta FW's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytePart {
    /// Path and query as they are sent, and `Referer`.
    Uri,
    /// Names of cookies.
    Token,
    /// Directives of `Cache-Control`.
    QuotedToken,
    /// Dates.
    NoControl,
    /// `User-Agent`, and fields without a part of their own.
    Text,
    /// Each address of `X-Forwarded-For`.
    ForwardedFor,
    /// Values of cookies.
    Cookie,
    /// What is within the quotes of `If-Match` and `If-None-Match`.
    EntityTag,
}

impl BytePart {
    pub const ALL: [Self; 8] = [
        Self::Uri,
        Self::Token,
        Self::QuotedToken,
        Self::NoControl,
        Self::Text,
        Self::ForwardedFor,
        Self::Cookie,
        Self::EntityTag,
    ];

    /// Its directive.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uri => "http_uri_brange",
            Self::Token => "http_token_brange",
            Self::QuotedToken => "http_qetoken_brange",
            Self::NoControl => "http_nctl_brange",
            Self::Text => "http_ctext_vchar_brange",
            Self::ForwardedFor => "http_xff_brange",
            Self::Cookie => "http_cookie_brange",
            Self::EntityTag => "http_etag_brange",
        }
    }

    /// Bytes that no set for it may have: ends of lines and texts, and what separates its values.
    pub const fn never(self) -> &'static [u8] {
        match self {
            Self::Uri | Self::NoControl | Self::Text => b"\0\n\r",
            Self::Token => b"\0\n\r,;",
            Self::QuotedToken | Self::ForwardedFor => b"\0\n\r,",
            Self::Cookie => b"\0\n\r;=",
            Self::EntityTag => b"\0\n\r\"",
        }
    }
}

/// The bytes of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedBytes {
    pub part: BytePart,
    pub set: ByteSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_both_ends_of_its_ranges() {
        let mut set = ByteSet::default();
        set.add(b'a', b'c');
        set.add(0x80, 0x80);
        set.add(255, 255);
        let all: Vec<u8> = (0..=255).filter(|&byte| set.contains(byte)).collect();
        assert_eq!(all, [b'a', b'b', b'c', 0x80, 255]);
        assert_eq!(set.first_outside(b"abcb"), None);
        assert_eq!(set.first_outside(b"abdb"), Some(b'd'));
        assert_eq!(set.first_outside(b""), None);
    }
}
