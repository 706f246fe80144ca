//! Has the kernel resolve a neighbour. Requesting that over netlink takes privileges, but sending a datagram causes it
//! too.

use mill_sys::interface;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// Sockets that send empty datagrams.
#[derive(Debug)]
pub(super) struct NeighborProbe {
    index: u32,
    v4: UdpSocket,
    /// `None` if the kernel has no IPv6.
    v6: Option<UdpSocket>,
}

impl NeighborProbe {
    pub(super) fn new(name: &str, index: u32) -> io::Result<Self> {
        let bound = |address: IpAddr| {
            let socket = UdpSocket::bind((address, 0))?;
            socket.set_nonblocking(true)?;
            interface::bind_to(&socket, name)?;
            Ok::<UdpSocket, io::Error>(socket)
        };
        Ok(Self {
            index,
            v4: bound(Ipv4Addr::UNSPECIFIED.into())?,
            v6: bound(Ipv6Addr::UNSPECIFIED.into()).ok(),
        })
    }

    /// Sends an empty datagram to the neighbour's discard port (RFC 863): the kernel resolves the Ethernet address if
    /// it does not know it, and verifies it if that was long ago.
    pub(super) fn probe(&self, neighbor: IpAddr) -> io::Result<()> {
        let (socket, target) = match neighbor {
            IpAddr::V4(_) => (Some(&self.v4), SocketAddr::new(neighbor, DISCARD_PORT)),
            IpAddr::V6(address) => {
                let target = SocketAddrV6::new(address, DISCARD_PORT, 0, self.index);
                (self.v6.as_ref(), target.into())
            }
        };
        let socket = socket.ok_or(io::ErrorKind::Unsupported)?;
        socket.send_to(&[], target)?;
        Ok(())
    }
}

/// RFC 863: the port whose datagrams are discarded.
const DISCARD_PORT: u16 = 9;
