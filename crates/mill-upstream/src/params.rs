//! The parameters of a request to a FastCGI, uwsgi or SCGI server: names and values, as in CGI.

/// The name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamName<'a> {
    /// As a directive spells it.
    Literal(&'a [u8]),
    /// Of a field of the request, RFC 3875 4.1.18: `HTTP_`, then the field's name in capitals, with `_` for `-`.
    Field(&'a [u8]),
}

impl ParamName<'_> {
    /// Bytes that `emit` appends.
    pub const fn len(&self) -> usize {
        match self {
            Self::Literal(name) => name.len(),
            Self::Field(name) => FIELD_PREFIX.len() + name.len(),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Literal(name) => out.extend_from_slice(name),
            Self::Field(name) => {
                out.extend_from_slice(FIELD_PREFIX);
                out.extend(name.iter().map(|byte| of_field(*byte)));
            }
        }
    }

    /// Whether both are one name to the server. A directive's `HTTP_X` takes the place of the client's field `X`.
    pub fn is(&self, other: &[u8]) -> bool {
        match self {
            Self::Literal(name) => *name == other,
            Self::Field(name) => other.strip_prefix(FIELD_PREFIX).is_some_and(|other| {
                let folded = name.iter().map(|byte| of_field(*byte));
                folded.eq(other.iter().copied())
            }),
        }
    }
}

const FIELD_PREFIX: &[u8] = b"HTTP_";

const fn of_field(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_become_those_of_cgi() {
        let check = |name: ParamName<'_>, expected: &str| {
            let mut out = Vec::new();
            name.emit(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(name.len(), expected.len());
            assert!(name.is(expected.as_bytes()));
            assert!(!name.is(b"HTTP_") && !name.is(b"HTTP_X_FORWARDED_FOR_"));
        };
        check(ParamName::Field(b"X-Forwarded-For"), "HTTP_X_FORWARDED_FOR");
        check(ParamName::Field(b"x_y!1"), "HTTP_X_Y!1");
        check(ParamName::Literal(b"script-Name"), "script-Name");
        assert!(ParamName::Literal(b"").is_empty());
    }
}
