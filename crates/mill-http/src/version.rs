//! The HTTP version of a request, RFC 9112 2.3.

/// Only what changes behaviour: a minor version above 1 is treated as 1.1, as RFC 9110 2.5 requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Http10,
    #[default]
    Http11,
    Http2,
}

impl Version {
    /// The version's name in a status line and in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}
