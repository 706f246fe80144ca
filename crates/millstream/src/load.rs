//! The load generators: wrk, wrk2, ab and our own, on this machine's sockets.

use crate::help;
use crate::screen::Screen;
use crate::stack::{self, Taken};
use mill_load::dialect::{ab, h2load, wrk, wrk2};
use mill_load::native;
use mill_load::native::terminal::Terminal;
use mill_load_host::{Interrupts, KernelPlatform, LazyAttachment, respond};
use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// The tool of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Wrk,
    Wrk2,
    Ab,
    H2load,
    /// Our own, `millstream load`.
    Load,
}

impl Tool {
    /// By the name of the binary.
    pub(crate) fn named(name: &OsStr) -> Option<Self> {
        match name.as_bytes() {
            b"wrk" => Some(Self::Wrk),
            b"wrk2" => Some(Self::Wrk2),
            b"ab" => Some(Self::Ab),
            b"h2load" => Some(Self::H2load),
            _ => None,
        }
    }

    /// By the first argument.
    pub(crate) fn of_command(name: &[u8]) -> Option<Self> {
        match name {
            b"load" => Some(Self::Load),
            name => Self::named(OsStr::from_bytes(name)),
        }
    }
}

/// Carries out the arguments of a tool.
pub(crate) fn run(tool: Tool, arguments: &[Vec<u8>]) -> ExitCode {
    let Taken {
        stack,
        polling,
        rest,
    } = match stack::take(arguments) {
        Ok(taken) => taken,
        Err(message) => return refuse(&message),
    };
    if polling.is_some() {
        return refuse(stack::POLLING_OF_NOTHING);
    }
    let arguments = rest.as_slice();
    if let (Tool::Load, Some((first, rest))) = (tool, arguments.split_first())
        && first == b"respond"
    {
        if stack.is_some() {
            return refuse("\"load respond\" answers on kernel sockets only, without \"--stack\"");
        }
        return carry_out(|interrupts, out, err| respond(rest, &interrupts, out, err));
    }
    let say = |what: &str| help::complain(&format!("millstream: {what}\n"));
    let stack = stack.map(|stack| LazyAttachment::new(stack, say));
    carry_out(|interrupts, out, err| {
        let platform = KernelPlatform::new(interrupts).on_stack(stack);
        match tool {
            Tool::Wrk => wrk::main(arguments, &platform, out, err),
            Tool::Wrk2 => wrk2::main(arguments, &platform, out, err),
            Tool::Ab => ab::main(arguments, &platform, out, err),
            Tool::H2load => h2load::main(arguments, &platform, out, err),
            Tool::Load => native::main(arguments, &platform, out, err, terminal()),
        }
    })
}

/// Runs a command with its signals and streams, and exits with its status.
fn carry_out(command: impl FnOnce(Interrupts, &mut dyn Write, &mut dyn Write) -> u8) -> ExitCode {
    let interrupts = match Interrupts::listen() {
        Ok(interrupts) => interrupts,
        Err(error) => return refuse(&format!("signals cannot be received: {error}")),
    };
    let mut out = standard_output();
    let status = command(interrupts, &mut out, &mut io::stderr());
    match out.flush() {
        // A closed standard output is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            refuse(&format!("standard output: {error}"))
        }
        _ => ExitCode::from(status),
    }
}

/// The terminal of the native command.
fn terminal() -> Terminal {
    let screen = Screen::of_process();
    Terminal {
        screen_columns: screen.columns,
        colour: screen.colour,
    }
}

/// Line-buffered on a terminal, else buffered in large pieces.
fn standard_output() -> Box<dyn Write> {
    let out = io::stdout();
    if out.is_terminal() {
        Box::new(out)
    } else {
        Box::new(BufWriter::new(out))
    }
}

fn refuse(why: &str) -> ExitCode {
    help::complain(&format!("millstream: {why}\n"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_called_by_their_names() {
        let check = |name: &str, expected| assert_eq!(Tool::named(OsStr::new(name)), expected);
        check("wrk", Some(Tool::Wrk));
        check("wrk2", Some(Tool::Wrk2));
        check("ab", Some(Tool::Ab));
        check("abc", None);
        check("nginx", None);
        check("load", None);
        assert_eq!(Tool::of_command(b"load"), Some(Tool::Load));
        assert_eq!(Tool::of_command(b"wrk2"), Some(Tool::Wrk2));
        assert_eq!(Tool::of_command(b"serve"), None);
    }
}
