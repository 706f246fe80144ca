//! Restricting a socket to one interface (socket(7), SO_BINDTODEVICE).

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Makes a socket send by this interface, whatever the routes are, and receive only from it. Since Linux 5.7 this takes
/// no privileges, once for each socket.
pub fn bind_to(socket: &impl AsFd, name: &str) -> io::Result<()> {
    let len = libc::socklen_t::try_from(name.len())
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: pointer and length describe `name`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            name.as_ptr().cast(),
            len,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_is_bound_to_interfaces_that_exist() {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let refused = bind_to(&socket, "mill9").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
        bind_to(&socket, "lo").unwrap();
    }
}
