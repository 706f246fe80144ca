//! Socket addresses as C has them: `sockaddr_in` and `sockaddr_in6`.

use super::memory::{output, place};
use core::ffi::{c_uint, c_void};
use mill_sockets::errno::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// From the bytes of a `sockaddr`.
pub(super) fn parse(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    let two = |at: usize| bytes.get(at..at + 2).and_then(|two| two.first_chunk::<2>());
    let family = two(0).map(|two| u16::from_ne_bytes(*two));
    let port = two(2).map(|two| u16::from_be_bytes(*two));
    let port = port.ok_or(Errno::INVALID)?;
    let address = match family {
        Some(AF_INET) => {
            let octets = bytes.get(4..8).and_then(|octets| octets.first_chunk::<4>());
            IpAddr::V4(Ipv4Addr::from(*octets.ok_or(Errno::INVALID)?))
        }
        Some(AF_INET6) => {
            let octets = bytes
                .get(8..24)
                .and_then(|octets| octets.first_chunk::<16>());
            IpAddr::V6(Ipv6Addr::from(*octets.ok_or(Errno::INVALID)?))
        }
        _ => return Err(Errno::FAMILY),
    };
    Ok(SocketAddr::new(address, port))
}

/// The bytes of a `sockaddr`.
fn to_bytes(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.extend(AF_INET.to_ne_bytes());
            bytes.extend(address.port().to_be_bytes());
            bytes.extend(ip.octets());
            bytes.extend([0; 8]);
        }
        IpAddr::V6(ip) => {
            bytes.extend(AF_INET6.to_ne_bytes());
            bytes.extend(address.port().to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

/// Stores an address where a caller wants it, as much of it as there is room for, and its length.
///
/// # Safety
/// `len` is null or the caller's; if it is not null, that many bytes at `into`, unless that is null, may be written.
pub(super) unsafe fn store(address: SocketAddr, into: *mut c_void, len: *mut c_uint) {
    // SAFETY: the caller's promise.
    let Some(len) = (unsafe { place(len) }) else {
        return;
    };
    // SAFETY: the caller's promise.
    let into = unsafe { output(into, *len as usize) };
    let bytes = to_bytes(address);
    let count = bytes.len().min(into.len());
    into[..count].copy_from_slice(&bytes[..count]);
    *len = c_uint::try_from(bytes.len()).unwrap_or(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_they_were_made() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:65535"] {
            let address: SocketAddr = text.parse().expect("an address");
            let bytes = to_bytes(address);
            assert_eq!(parse(&bytes), Ok(address));
            let least = if address.is_ipv4() { 8 } else { 24 };
            assert_eq!(parse(&bytes[..least]), Ok(address));
            assert!(parse(&bytes[..least - 1]).is_err());
        }
        assert_eq!(parse(&[1, 0, 0, 80, 1, 2, 3, 4]), Err(Errno::FAMILY));
    }
}
