//! Which standard streams are terminals, and with which properties.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// The properties of the terminal, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Width of the terminal of standard error, if lines can be redrawn there.
    pub(crate) columns: Option<u16>,
    /// Standard output supports colours, and they are not disabled (no-color.org).
    pub(crate) colour: bool,
}

impl Screen {
    /// From the environment.
    pub(crate) fn of_process() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let moves_cursor = variable("TERM").is_some_and(|term| term != "dumb");
        let columns = mill_sys::terminal::columns(io::stderr().as_fd());
        Self {
            columns: columns.filter(|_| moves_cursor),
            colour: moves_cursor && io::stdout().is_terminal() && variable("NO_COLOR").is_none(),
        }
    }
}
