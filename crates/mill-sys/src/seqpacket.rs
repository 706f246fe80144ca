//! Connected UNIX sockets that preserve datagram boundaries (unix(7), SOCK_SEQPACKET), by name; non-blocking.

use crate::process::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Listens at `name`: a path, or an abstract name after a NUL, which needs no file. Fails with `AddrInUse` if the path
/// exists, whether or not a process listens there.
pub fn listen(name: &[u8], backlog: u16) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let (address, len) = address(name)?;
    // SAFETY: the pointer and length describe `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    // SAFETY: listen takes numbers.
    check(unsafe { libc::listen(socket.as_raw_fd(), i32::from(backlog)) })?;
    Ok(socket)
}

/// Accepts a connection; `WouldBlock` if none waits.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the address pointers may be null.
    let number = unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            flags,
        )
    };
    check(number)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Connects to the listener at `name` (see [`listen`]). `ConnectionRefused` if no process listens there any more,
/// `WouldBlock` if the accept queue is full.
pub fn connect(name: &[u8]) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let (address, len) = address(name)?;
    // SAFETY: the pointer and length describe `address`, which outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id; 0 if it is outside of this process's namespaces.
    pub process: i32,
    /// Its user id when it connected, or listened.
    pub user: u32,
}

/// Identifies the other end (SO_PEERCRED).
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    // SAFETY: pointer and size describe `found`, plain numbers, which outlives the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut size,
        )
    })?;
    Ok(Peer {
        process: found.pid,
        user: found.uid,
    })
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes numbers.
    let number = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    check(number)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A path ends with a NUL; an abstract name is as long as the address says.
fn address(name: &[u8]) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: a sockaddr_un is numbers, for which zero is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    let room = address.sun_path.len();
    let is_abstract = name.first() == Some(&0);
    if name.is_empty() || name.len() >= room || (!is_abstract && name.contains(&0)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in address.sun_path.iter_mut().zip(name) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let used = std::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    let len = if is_abstract { used } else { used + 1 };
    Ok((address, libc::socklen_t::try_from(len).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passing;
    use std::os::fd::{AsFd, AsRawFd};

    fn check_name(name: &[u8]) {
        assert_eq!(
            connect(name).unwrap_err().kind(),
            if name[0] == 0 {
                io::ErrorKind::ConnectionRefused
            } else {
                io::ErrorKind::NotFound
            }
        );
        let listener = listen(name, 4).unwrap();
        assert_eq!(
            accept(listener.as_fd()).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let near = connect(name).unwrap();
        let far = accept(listener.as_fd()).unwrap();
        let own = Peer {
            process: std::process::id().cast_signed(),
            user: crate::account::own_user(),
        };
        assert_eq!(peer(far.as_fd()).unwrap(), own);
        assert_eq!(peer(near.as_fd()).unwrap(), own);
        passing::send(near.as_fd(), b"whole", &[]).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(passing::receive(far.as_fd(), &mut buffer).unwrap().0, 5);
        let nothing = passing::receive(far.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(
            listen(name, 4).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        // A process that another test is starting holds the socket as well, until it executes its program: a shutdown
        // ends the listening for all holders, closing does not.
        // SAFETY: the descriptor is open, and the call touches no memory.
        let shut = unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
        assert_eq!(shut, 0);
        drop(listener);
        assert_eq!(
            connect(name).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }

    #[test]
    fn a_client_connects_by_the_name() {
        let number = std::process::id();
        let path = std::env::temp_dir().join(format!("mill-seqpacket-{number}"));
        check_name(path.as_os_str().as_encoded_bytes());
        std::fs::remove_file(path).unwrap();
        check_name(format!("\0mill-seqpacket-{number}").as_bytes());
    }

    #[test]
    fn names_that_do_not_fit_an_address_are_refused() {
        for name in [&b""[..], b"/tmp/a\0b", &[b'x'; 108]] {
            let error = listen(name, 1).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{name:?}");
        }
    }
}
