//! What a terminal says of itself.

use crate::process::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The columns of the terminal behind a descriptor; `None` if it is none, or does not know.
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

/// Columns and rows of the terminal behind a descriptor; `None` if it is none, or does not know.
pub fn size(descriptor: BorrowedFd<'_>) -> Option<(u16, u16)> {
    let size = window(descriptor)?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// A terminal that gives each key at once and shows none, until this is dropped.
#[derive(Debug)]
pub struct Keys<'a> {
    terminal: BorrowedFd<'a>,
    before: libc::termios,
}

impl<'a> Keys<'a> {
    /// Fails for what is no terminal. Keys that make signals still do.
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
        // A terminal that is gone needs nothing.
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
    fn what_is_no_terminal_has_no_columns() {
        let (near, _far) = crate::passing::pair().unwrap();
        assert_eq!(columns(near.as_fd()), None);
        assert_eq!(size(near.as_fd()), None);
        assert!(Keys::of(near.as_fd()).is_err());
    }
}
