//! Socket addresses between Rust's types and the kernel's.

use crate::listener::Endpoint;
use crate::process::check;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

/// A socket address in the form that system calls take.
#[derive(Clone, Copy)]
pub struct SockAddr {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

/// A socket address returned by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Ip(SocketAddr),
    /// A Unix socket. Peers have no name.
    Unix,
}

impl SockAddr {
    /// Fails if a Unix path is empty or too long for the kernel (107 bytes).
    pub fn new(endpoint: Endpoint<'_>) -> io::Result<Self> {
        match endpoint {
            Endpoint::Ip(SocketAddr::V4(address)) => Ok(Self::from_parts(libc::sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.ip().octets()),
                },
                sin_zero: [0; 8],
            })),
            Endpoint::Ip(SocketAddr::V6(address)) => Ok(Self::from_parts(libc::sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: address.scope_id(),
            })),
            Endpoint::Unix(path) => Self::unix(path),
        }
    }

    /// An address for the kernel to fill in.
    pub(crate) fn empty() -> Self {
        // SAFETY: sockaddr_storage is plain bytes, all zero is a valid value (AF_UNSPEC).
        let storage = unsafe { std::mem::zeroed() };
        Self {
            storage,
            length: length_of::<libc::sockaddr_storage>(),
        }
    }

    pub fn family(&self) -> i32 {
        i32::from(self.storage.ss_family)
    }

    pub fn bind(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: pointer and length describe `self.storage`, which lives through the call.
        check(unsafe { libc::bind(socket.as_raw_fd(), self.as_ptr(), self.length) })
    }

    /// Starts to connect; `EINPROGRESS` counts as success.
    pub fn connect(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: as in `bind`.
        let result = unsafe { libc::connect(socket.as_raw_fd(), self.as_ptr(), self.length) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EINPROGRESS) {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// The address that the kernel has written.
    pub fn peer(&self) -> Peer {
        match self.family() {
            libc::AF_INET => {
                let raw: libc::sockaddr_in = self.to_parts();
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                Peer::Ip(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
            }
            libc::AF_INET6 => {
                let raw: libc::sockaddr_in6 = self.to_parts();
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = u16::from_be(raw.sin6_port);
                Peer::Ip(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => Peer::Unix,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// Its length, or that of the room for it.
    pub(crate) const fn length(&self) -> libc::socklen_t {
        self.length
    }

    /// Pointers for a call that writes the address.
    pub(crate) fn as_out(&mut self) -> (*mut libc::sockaddr, *mut libc::socklen_t) {
        ((&raw mut self.storage).cast(), &raw mut self.length)
    }

    fn unix(path: &[u8]) -> io::Result<Self> {
        let mut raw = libc::sockaddr_un {
            sun_family: family(libc::AF_UNIX),
            sun_path: [0; UNIX_PATH_MAX],
        };
        if path.is_empty() || path.len() >= UNIX_PATH_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (target, byte) in raw.sun_path.iter_mut().zip(path) {
            *target = byte.cast_signed();
        }
        Ok(Self::from_parts(raw))
    }

    fn from_parts<T: Copy>(raw: T) -> Self {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        let mut address = Self::empty();
        let target = (&raw mut address.storage).cast::<T>();
        // SAFETY: the storage is at least as large as T (asserted above) and aligned for every address type.
        unsafe { target.write(raw) };
        address.length = length_of::<T>();
        address
    }

    fn to_parts<T: Copy>(self) -> T {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: T is a plain address type no larger than the storage, in which every byte is initialised.
        unsafe { (&raw const self.storage).cast::<T>().read() }
    }
}

impl std::fmt::Debug for SockAddr {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.peer().fmt(formatter)
    }
}

fn family(family: i32) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).expect("address families are small numbers")
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("addresses are small")
}

/// The size of `sun_path` (unix(7)), its final NUL included.
const UNIX_PATH_MAX: usize = 108;

#[cfg(test)]
mod tests {
    use super::*;

    fn check_round_trip(text: &str) {
        let address: SocketAddr = text.parse().unwrap();
        let raw = SockAddr::new(Endpoint::Ip(address)).unwrap();
        assert_eq!(raw.peer(), Peer::Ip(address));
    }

    #[test]
    fn ip_addresses_survive_the_conversion() {
        check_round_trip("127.0.0.1:8080");
        check_round_trip("[2001:db8::1]:443");
    }

    #[test]
    fn a_unix_path_may_have_107_bytes_and_not_108() {
        assert!(SockAddr::new(Endpoint::Unix(&[b'a'; 107])).is_ok());
        assert!(SockAddr::new(Endpoint::Unix(&[b'a'; 108])).is_err());
        assert!(SockAddr::new(Endpoint::Unix(b"")).is_err());
    }
}
