//! Names of hosts as they are asked for: in lower case, without the final dot.

use std::fmt;

/// A host name that a question can carry (RFC 1035 2.3.4): labels of 1 to 63 bytes, at most 253 with the dots between
/// them. It lies where it is used, so that looking into a cache allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HostName {
    bytes: [u8; NAME_BYTES_MAX],
    len: u8,
}

impl HostName {
    /// Reads what a configuration or a variable says. `None` is a name that no server can know.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        let len = u8::try_from(text.len()).ok()?;
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        bytes.make_ascii_lowercase();
        let name = Self { bytes, len };
        name.labels().all(is_label).then_some(name)
    }

    /// Joins labels, none of which has a dot.
    pub(super) fn of_labels<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut text = Vec::with_capacity(NAME_BYTES_MAX + 1);
        for label in labels {
            if label.contains(&b'.') || text.len() > NAME_BYTES_MAX {
                return None;
            }
            text.extend_from_slice(label);
            text.push(b'.');
        }
        Self::parse(&text)
    }

    /// The name of the SRV records of `service` at this host: `http` is `_http._tcp.HOST`; a service with a dot is
    /// complete, and is only put in front.
    pub fn of_service(service: &[u8], host: &[u8]) -> Option<Self> {
        let full = if service.contains(&b'.') {
            [service, b".", host].concat()
        } else {
            [b"_", service, b"._tcp.", host].concat()
        };
        Self::parse(&full)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        self.as_bytes().split(|byte| *byte == b'.')
    }
}

fn is_label(label: &[u8]) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
}

impl fmt::Debug for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.as_bytes().escape_ascii())
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Bytes: 255 of RFC 1035 2.3.4, less the length byte of the first label and the root's.
const NAME_BYTES_MAX: usize = 253;

/// Bytes (RFC 1035 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: impl AsRef<[u8]>, expected: Option<&str>) {
        let name = HostName::parse(text.as_ref());
        assert_eq!(name.map(|name| name.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_name_is_lower_case_and_has_no_final_dot() {
        check("Backend.Example", Some("backend.example"));
        check("backend.example.", Some("backend.example"));
        check("localhost", Some("localhost"));
        check("b\0d", Some("b\\x00d"));
    }

    #[test]
    fn empty_labels_and_what_is_too_long_are_no_names() {
        for text in ["", ".", "..", ".a", "a..b", "a.."] {
            check(text, None);
        }
        let label = "x".repeat(63);
        check(&label, Some(&label));
        check("x".repeat(64), None);
        let longest = format!("{label}.{label}.{label}.{}", "y".repeat(61));
        check(&longest, Some(&longest));
        check(format!("{longest}."), Some(&longest));
        check(format!("{longest}y"), None);
    }

    #[test]
    fn a_service_without_a_dot_gets_the_prefix_of_tcp() {
        let check = |service: &[u8], expected: &str| {
            let name = HostName::of_service(service, b"backend.example").unwrap();
            assert_eq!(name.to_string(), expected);
        };
        check(b"http", "_http._tcp.backend.example");
        check(b"_http._udp", "_http._udp.backend.example");
        check(b"one.two", "one.two.backend.example");
    }

    #[test]
    fn a_label_with_a_dot_makes_no_name() {
        let join = |labels: &[&'static [u8]]| {
            let name = HostName::of_labels(labels.iter().copied());
            name.map(|name| name.to_string())
        };
        assert_eq!(join(&[b"A", b"b"]).as_deref(), Some("a.b"));
        assert_eq!(join(&[b"a.b", b"c"]), None);
        assert_eq!(join(&[]), None);
        let many = [&b"x"[..]; 127];
        assert!(join(&many).is_some());
        assert_eq!(join(&[&b"x"[..]; 128]), None);
    }
}
