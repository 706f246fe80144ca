//! Request methods: those that nginx has names for, and all others as `Other`.

/// Numbered so that a set of methods (`limit_except`) fits a `u32`: see [`Method::bit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    MkCol,
    Copy,
    Move,
    Options,
    PropFind,
    PropPatch,
    Lock,
    Unlock,
    Patch,
    Trace,
    Connect,
    /// A well-formed method without a name here; its text is `RequestHead::method_name`.
    Other,
}

const NAMES: [(&[u8], Method); 16] = [
    (b"GET", Method::Get),
    (b"HEAD", Method::Head),
    (b"POST", Method::Post),
    (b"PUT", Method::Put),
    (b"DELETE", Method::Delete),
    (b"MKCOL", Method::MkCol),
    (b"COPY", Method::Copy),
    (b"MOVE", Method::Move),
    (b"OPTIONS", Method::Options),
    (b"PROPFIND", Method::PropFind),
    (b"PROPPATCH", Method::PropPatch),
    (b"LOCK", Method::Lock),
    (b"UNLOCK", Method::Unlock),
    (b"PATCH", Method::Patch),
    (b"TRACE", Method::Trace),
    (b"CONNECT", Method::Connect),
];

impl Method {
    /// The method of this exact, case-sensitive name.
    pub fn parse(name: &[u8]) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Self::Other, |(_, method)| *method)
    }

    /// The method's name; empty for `Other`.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, method)| *method == self)
            .and_then(|(name, _)| core::str::from_utf8(name).ok())
            .unwrap_or("")
    }

    /// This method's bit in a set of methods.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// nginx's alphabet for methods: upper-case letters, `_` and `-`. Narrower than RFC 9110's token; other bytes get 400
/// (a TLS hello on a plain port is recognised by its first byte).
pub const fn is_method_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_its_method_and_back() {
        for (name, method) in NAMES {
            assert_eq!(Method::parse(name), method);
            assert_eq!(method.name().as_bytes(), name);
        }
        assert_eq!(Method::parse(b"get"), Method::Other);
        assert_eq!(Method::parse(b"GETS"), Method::Other);
        assert_eq!(Method::Other.name(), "");
    }
}
