//! Which of our streams people look at, and what they want to see there.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// What is known of the terminal, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Width of the terminal that standard error goes to, if lines can be drawn over there.
    pub(crate) columns: Option<u16>,
    /// Standard output takes colours, and nobody has forbidden them (no-color.org).
    pub(crate) colour: bool,
}

impl Screen {
    /// As the environment says now.
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
