//! What clients expect of the server.

use crate::client::Client;

/// How the server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Reset,
}

impl Client {
    /// Whether exactly `expected` has come; more fails.
    pub(crate) fn has(&mut self, expected: &[u8]) -> bool {
        self.pump();
        assert!(
            expected.starts_with(&self.received),
            "got {:?}, not {:?}",
            self.received.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
        self.received.len() == expected.len()
    }

    pub(crate) fn ended(&mut self, end: End) -> bool {
        self.pump();
        assert!(self.end.is_none_or(|seen| seen == end), "{:?}", self.end);
        self.end.is_some()
    }
}
