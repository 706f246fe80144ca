//! Why a name has no addresses.

use std::fmt;

/// Displayed with nginx's number and text, as in `backend.example could not be resolved (3: Host not found)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The server did not understand the question.
    FormatError,
    ServerFailure,
    /// No such name, or it has no address of a family that is asked for.
    NotFound,
    NotImplemented,
    Refused,
    /// No server has answered within `resolver_timeout`.
    TimedOut,
    /// As many names are asked for, or as many requests wait for one, as may; nginx has no such limit.
    Busy,
}

impl ResolveError {
    /// The response codes of RFC 1035 4.1.1 that answer a question; `None` for any other.
    pub(super) const fn from_response_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::FormatError,
            2 => Self::ServerFailure,
            3 => Self::NotFound,
            4 => Self::NotImplemented,
            5 => Self::Refused,
            _ => return None,
        })
    }

    /// nginx's number: the response code, else the error number of the system.
    pub const fn code(self) -> u8 {
        match self {
            Self::FormatError => 1,
            Self::ServerFailure => 2,
            Self::NotFound => 3,
            Self::NotImplemented => 4,
            Self::Refused => 5,
            Self::Busy => 11,
            Self::TimedOut => 110,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::FormatError => "Format error",
            Self::ServerFailure => "Server failure",
            Self::NotFound => "Host not found",
            Self::NotImplemented => "Unimplemented",
            Self::Refused => "Operation refused",
            Self::TimedOut => "Operation timed out",
            Self::Busy => "Resource temporarily unavailable",
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code(), self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::ResolveError;

    #[test]
    fn errors_read_as_nginx_writes_them() {
        let check = |error: ResolveError, expected| assert_eq!(error.to_string(), expected);
        check(ResolveError::NotFound, "3: Host not found");
        check(ResolveError::ServerFailure, "2: Server failure");
        check(ResolveError::TimedOut, "110: Operation timed out");
        for code in 1..=5 {
            let error = ResolveError::from_response_code(code).unwrap();
            assert_eq!(error.code(), code);
        }
        assert_eq!(ResolveError::from_response_code(0), None);
        assert_eq!(ResolveError::from_response_code(6), None);
    }
}
