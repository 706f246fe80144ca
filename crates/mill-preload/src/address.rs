//! Socket addresses as C has them: `sockaddr_in` and `sockaddr_in6`.

use crate::memory::{input, output, places};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use libc::{AF_INET, AF_INET6, sockaddr, socklen_t};
use mill_sockets::errno::Errno;

/// The address at a pointer; `None` if it is none of IP.
///
/// # Safety
/// `len` bytes may be read there.
pub(crate) unsafe fn parse(address: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    let len = (len as usize).min(LEN_MAX);
    // SAFETY: the caller's promise.
    parse_bytes(unsafe { input(address.cast(), len) })
}

/// Whether an address is of no family: connect(2) dissolves a connection so.
///
/// # Safety
/// As [`parse`].
pub(crate) unsafe fn is_unspecified(address: *const sockaddr, len: socklen_t) -> bool {
    let len = (len as usize).min(LEN_MAX);
    // SAFETY: the caller's promise.
    let bytes = unsafe { input(address.cast(), len) };
    bytes.first_chunk() == Some(&[0, 0])
}

/// Bytes of the longest address (`struct sockaddr_storage`).
const LEN_MAX: usize = 128;

pub(crate) fn parse_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match family {
        AF_INET if bytes.len() >= 16 => {
            IpAddr::V4(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?))
        }
        AF_INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The bytes of a `sockaddr`.
fn to_bytes(address: SocketAddr) -> ([u8; 28], usize) {
    let mut bytes = [0; 28];
    let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    let family = u16::try_from(family).unwrap_or(0);
    bytes[..2].copy_from_slice(&family.to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[4..8].copy_from_slice(&ip.octets());
            (bytes, 16)
        }
        IpAddr::V6(ip) => {
            bytes[8..24].copy_from_slice(&ip.octets());
            (bytes, 28)
        }
    }
}

/// Stores an address where a caller wants it, as much of it as there is room for, and its length.
///
/// # Safety
/// `len` is null or the caller's; if it is not null, that many bytes at `into`, unless that is null, may be written.
pub(crate) unsafe fn store(
    address: SocketAddr,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let [len] = (unsafe { places(len, 1) }) else {
        return Err(Errno::FAULT);
    };
    let room = i32::try_from(*len).map_err(|_| Errno::INVALID)?;
    if into.is_null() && room > 0 {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise.
    let into = unsafe { output(into.cast(), *len as usize) };
    let (bytes, count) = to_bytes(address);
    let stored = count.min(into.len());
    into[..stored].copy_from_slice(&bytes[..stored]);
    *len = socklen_t::try_from(count).unwrap_or(0);
    Ok(())
}
