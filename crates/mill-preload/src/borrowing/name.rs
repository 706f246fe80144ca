//! The name of a local socket that stands for a connection, by which any process that gets its other end knows the connection's addresses
//! (getpeername(2)). It is an abstract one (unix(7)), which no file system has:
//!
//! ```text
//! 0 | "millstream" | cookie of the other end, 8 | family, address, port | family, address, port
//! ```
//!
//! The cookie tells that other end from a socket that has connected to the name.

use crate::kernel_options;
use crate::originals;
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use libc::{sockaddr_un, socklen_t};
use std::os::fd::{AsRawFd, RawFd};

/// Names the end of a new pair that is the stack's. Without a name a process that gets the other one by a message has a local socket.
pub(crate) fn give(near: &impl AsRawFd, far: &impl AsRawFd, names: (SocketAddr, SocketAddr)) {
    let Some(cookie) = kernel_options::cookie(far.as_raw_fd()) else {
        return;
    };
    let mut address = empty();
    let name = encode(cookie, names);
    for (place, byte) in address.sun_path.iter_mut().zip(name) {
        *place = byte.cast_signed();
    }
    let len = PATH_START + NAME_BYTES;
    let address = (&raw const address).cast();
    // SAFETY: the pointer is to a local, of more bytes than the length says.
    unsafe { originals::bind(near.as_raw_fd(), address, socklen_of(len)) };
}

/// The addresses of the connection that a local socket stands for, its own and the peer's. `None` if it is something else.
pub(crate) fn read(socket: RawFd) -> Option<(SocketAddr, SocketAddr)> {
    let mut address = empty();
    let mut len = socklen_of(size_of::<sockaddr_un>());
    let place = (&raw mut address).cast();
    // SAFETY: the pointers are to locals, of the stated size.
    let found = unsafe { originals::getpeername(socket, place, &raw mut len) };
    let is_local = c_int::from(address.sun_family) == libc::AF_UNIX;
    if found != 0 || !is_local || len as usize != PATH_START + NAME_BYTES {
        return None;
    }
    let path = address.sun_path.first_chunk::<NAME_BYTES>()?;
    let (cookie, names) = decode(&path.map(|byte| byte.cast_unsigned()))?;
    (kernel_options::cookie(socket) == Some(cookie)).then_some(names)
}

fn encode(cookie: u64, (local, peer): (SocketAddr, SocketAddr)) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let (start, rest) = name.split_at_mut(START.len());
    start.copy_from_slice(START);
    let (first, rest) = rest.split_at_mut(8);
    first.copy_from_slice(&cookie.to_be_bytes());
    let (first, second) = rest.split_at_mut(ADDRESS_BYTES);
    first.copy_from_slice(&encode_address(local));
    second.copy_from_slice(&encode_address(peer));
    name
}

fn decode(name: &[u8; NAME_BYTES]) -> Option<(u64, (SocketAddr, SocketAddr))> {
    let rest = name.strip_prefix(START)?;
    let (cookie, rest) = rest.split_first_chunk()?;
    let (local, peer) = rest.split_first_chunk()?;
    let names = (decode_address(local)?, decode_address(peer.first_chunk()?)?);
    Some((u64::from_be_bytes(*cookie), names))
}

fn encode_address(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
    bytes[17..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

fn decode_address(bytes: &[u8; ADDRESS_BYTES]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first()?;
    let (ip, port) = rest.split_first_chunk::<16>()?;
    let ip = match family {
        4 => IpAddr::V4(Ipv4Addr::from(*ip.first_chunk::<4>()?)),
        6 => IpAddr::V6(Ipv6Addr::from(*ip)),
        _ => return None,
    };
    let port = u16::from_be_bytes(*port.first_chunk()?);
    Some(SocketAddr::new(ip, port))
}

fn empty() -> sockaddr_un {
    sockaddr_un {
        sun_family: libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or(0),
        sun_path: [0; 108],
    }
}

fn socklen_of(len: usize) -> socklen_t {
    socklen_t::try_from(len).unwrap_or(0)
}

const START: &[u8] = b"\0millstream";

/// Family, address and port.
const ADDRESS_BYTES: usize = 19;

const NAME_BYTES: usize = START.len() + 8 + 2 * ADDRESS_BYTES;

/// Where the name stands in an address.
const PATH_START: usize = core::mem::offset_of!(sockaddr_un, sun_path);
