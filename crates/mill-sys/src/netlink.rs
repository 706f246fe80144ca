//! rtnetlink(7): queries and notifications about interfaces, addresses, routes and neighbours. Messages are parsed by
//! the callers.

use crate::listener::set_int;
use crate::process::check;
use crate::socket::{set_option, timeval};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Adding addresses to interfaces.
mod address;
pub use address::add_address;

/// Sockets of the kernel.
mod sock_diag;
pub use sock_diag::{TcpSocket, tcp_connections, tcp_listeners, tcp_sockets};

/// What drivers do with XDP programs.
mod xdp_features;
pub use xdp_features::{XdpFeatures, xdp_features};

#[cfg(test)]
mod tests;

/// An rtnetlink socket. It belongs to the network namespace in which it was opened, wherever it is used.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

/// Multicast groups of notifications; subscribing takes no privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Links,
    Neighbors,
    AddressesV4,
    AddressesV6,
    RoutesV4,
    RoutesV6,
    /// Next-hop objects, which routes refer to by id.
    NextHops,
}

/// The result of `receive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes of messages.
    Messages(usize),
    /// Messages were lost: the socket's receive buffer was too small, or the caller's.
    Overrun,
}

impl Netlink {
    /// A socket for requests: `receive` waits for the answer, for [`ANSWER_WAIT`] at most. The kernel checks requests
    /// strictly, and therefore applies the filters of a dump.
    pub fn open() -> io::Result<Self> {
        let socket = socket(libc::NETLINK_ROUTE, 0)?;
        let fd = socket.as_fd();
        set_option(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            &timeval(ANSWER_WAIT),
        )?;
        // Linux before 4.20 lacks the option, and dumps everything.
        let _older = set_int(fd, libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK, 1);
        Ok(Self(socket))
    }

    /// A socket that receives notifications and never waits.
    pub fn subscribe(groups: &[Group]) -> io::Result<Self> {
        let socket = socket(libc::NETLINK_ROUTE, libc::SOCK_NONBLOCK)?;
        let listener = Self(socket);
        listener.bind()?;
        for group in groups {
            let number = group.number();
            let fd = listener.0.as_fd();
            set_option(fd, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &number)?;
        }
        Ok(listener)
    }

    /// Binds to an address that the kernel chooses; multicast messages reach only sockets that are bound.
    fn bind(&self) -> io::Result<()> {
        // SAFETY: a sockaddr_nl is plain numbers, for which zero is valid.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).unwrap_or(0);
        // SAFETY: pointer and length describe `address`, which outlives the call.
        check(unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                socklen::<libc::sockaddr_nl>(),
            )
        })
    }

    /// Sets the size of the receive buffer in bytes of the kernel's accounting; the kernel doubles it for its own
    /// overhead.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set_int(self.0.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
    }

    /// Sends one message to the kernel.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length describe `message`, which outlives the call.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }

    /// Receives one datagram of the kernel, which holds one message or more. `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.receive_any(buffer) {
                Ok((received, true)) => return Ok(received),
                // Other programs can send to this socket; their messages are ignored.
                Ok((_, false)) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Received::Overrun);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives a datagram, and whether it came from the kernel.
    fn receive_any(&self, buffer: &mut [u8]) -> io::Result<(Received, bool)> {
        // SAFETY: a sockaddr_nl is plain numbers, for which zero is valid.
        let mut sender: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        let mut sender_len = socklen::<libc::sockaddr_nl>();
        // SAFETY: pointers and lengths describe `buffer` and `sender`, which outlive the call.
        let received = unsafe {
            libc::recvfrom(
                self.0.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_TRUNC,
                (&raw mut sender).cast(),
                &raw mut sender_len,
            )
        };
        let len = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        let received = if len > buffer.len() {
            Received::Overrun
        } else {
            Received::Messages(len)
        };
        Ok((received, sender.nl_pid == 0))
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Group {
    const fn number(self) -> libc::c_uint {
        match self {
            Self::Links => libc::RTNLGRP_LINK,
            Self::Neighbors => libc::RTNLGRP_NEIGH,
            Self::AddressesV4 => libc::RTNLGRP_IPV4_IFADDR,
            Self::AddressesV6 => libc::RTNLGRP_IPV6_IFADDR,
            Self::RoutesV4 => libc::RTNLGRP_IPV4_ROUTE,
            Self::RoutesV6 => libc::RTNLGRP_IPV6_ROUTE,
            Self::NextHops => libc::RTNLGRP_NEXTHOP,
        }
    }
}

fn socket(protocol: libc::c_int, flags: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
    // SAFETY: socket(2) takes no pointer.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) };
    check(number)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("options and addresses are short")
}

/// The kernel answers before `send` returns; after this time there will be no answer.
pub const ANSWER_WAIT: Duration = Duration::from_secs(2);
