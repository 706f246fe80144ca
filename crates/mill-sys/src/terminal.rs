//! What a terminal says of itself.

use std::os::fd::{AsRawFd, BorrowedFd};

/// The columns of the terminal behind a descriptor; `None` if it is none, or does not know.
pub fn columns(descriptor: BorrowedFd<'_>) -> Option<u16> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes a winsize, which the pointer is to; anything but a terminal refuses it.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_no_terminal_has_no_columns() {
        let (near, _far) = crate::passing::pair().unwrap();
        assert_eq!(columns(near.as_fd()), None);
    }
}
