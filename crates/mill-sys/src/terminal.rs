//! The size and mode of a terminal.

use crate::process::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The columns of a descriptor's terminal; `None` if it is no terminal, or its size is unknown.
pub fn columns(descriptor: BorrowedFd<'_>) -> Option<u16> {
    let columns = window(descriptor)?.ws_col;
    (columns > 0).then_some(columns)
}

fn window(descriptor: BorrowedFd<'_>) -> Option<libc::winsize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes a winsize, which the pointer is to; anything but a terminal refuses it.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0).then_some(size)
}

/// Columns and rows of a descriptor's terminal; `None` if it is no terminal, or its size is unknown.
pub fn size(descriptor: BorrowedFd<'_>) -> Option<(u16, u16)> {
    let size = window(descriptor)?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Switches a terminal to unbuffered input without echo, until this is dropped.
#[derive(Debug)]
pub struct Keys<'a> {
    terminal: BorrowedFd<'a>,
    before: libc::termios,
}

impl<'a> Keys<'a> {
    /// Fails if the descriptor is no terminal. Keys that send signals still do.
    pub fn of(terminal: BorrowedFd<'a>) -> io::Result<Self> {
        // SAFETY: a termios is numbers, for which zero is valid.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: tcgetattr writes a termios, which the pointer is to.
        check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut before) })?;
        let mut wanted = before;
        wanted.c_lflag &= !(libc::ICANON | libc::ECHO);
        // SAFETY: tcsetattr reads a termios, which the pointer is to.
        check(unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const wanted) })?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // Restoring fails if the terminal is gone, which does not matter.
        // SAFETY: tcsetattr reads a termios, which the pointer is to.
        unsafe {
            libc::tcsetattr(
                self.terminal.as_raw_fd(),
                libc::TCSANOW,
                &raw const self.before,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_that_is_no_terminal_has_no_columns() {
        let (near, _far) = crate::passing::pair().unwrap();
        assert_eq!(columns(near.as_fd()), None);
        assert_eq!(size(near.as_fd()), None);
        assert!(Keys::of(near.as_fd()).is_err());
    }
}
