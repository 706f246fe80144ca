//! The properties of the output streams, found by the binary.

/// Which streams are terminals. The default is that of a pipe: no screen, no colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The columns of the terminal of standard error, if it is one that supports cursor movement.
    pub screen_columns: Option<u16>,
    /// Standard output is a terminal, and `NO_COLOR` is not set.
    pub colour: bool,
}
