//! What stands behind the output, as the binary found it.

/// Which streams people look at. The default is that of a pipe: no screen, no colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The columns of the terminal that standard error is, if it is one that moves its cursor.
    pub screen_columns: Option<u16>,
    /// Standard output is a terminal, and nobody asked for no colour (`NO_COLOR`).
    pub colour: bool,
}
