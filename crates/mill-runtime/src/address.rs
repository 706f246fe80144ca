//! Addresses of peers and listeners.

use alloc::rc::Rc;
use core::fmt;
use core::net::SocketAddr;

/// The address of a socket. A Unix socket's path is shared: every connection of one listener has the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    Ip(SocketAddr),
    /// The path of a Unix socket; empty for an unnamed peer.
    Unix(Rc<[u8]>),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.escape_ascii()),
        }
    }
}
