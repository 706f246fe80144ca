//! Which stream comes first: RFC 9218.

/// What a client asks for, in the field `Priority` or in PRIORITY_UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// The answer is of use in parts: streams of one urgency that are incremental share the connection.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// Reads a structured field: a dictionary, of which only `u` and `i` count. What is malformed counts as not said.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|byte| *byte == b',') {
            let member = member.trim_ascii();
            let member = member.split(|byte| *byte == b';').next().unwrap_or(member);
            match member.trim_ascii_end() {
                [b'u', b'=', urgency @ b'0'..=b'7'] => priority.urgency = urgency - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_and_incremental_are_read_and_the_rest_is_ignored() {
        let check = |value: &str, urgency, incremental| {
            let expected = Priority {
                urgency,
                incremental,
            };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
        };
        check("", 3, false);
        check("u=0", 0, false);
        check("u=5, i", 5, true);
        check("i;x=1,u=7", 7, true);
        check("u=8, i=?0", 3, false);
        check("u=1,i, u=2, i=?0", 2, false);
        check("u=-1, a=b, i=1", 3, false);
    }
}
