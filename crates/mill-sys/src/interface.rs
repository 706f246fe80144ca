//! Network interfaces and their addresses (getifaddrs(3)).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// As ip-link(8) calls the interface.
    pub interface: String,
    pub address: IpAddr,
}

/// The IP addresses of this machine, in the network namespace of the caller.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a local; the list that it is set to is freed below.
    let result = unsafe { libc::getifaddrs(&raw mut list) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut entry = list;
    // SAFETY: every link of the list is null or points to an entry, until the list is freed.
    while let Some(one) = unsafe { entry.as_ref() } {
        found.extend(address_of(one));
        entry = one.ifa_next;
    }
    // SAFETY: the list is getifaddrs's, nothing borrowed from it is left, and it is freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

fn address_of(entry: &libc::ifaddrs) -> Option<InterfaceAddress> {
    // SAFETY: an entry's address is null or a socket address, whose family says how long it is.
    let family = unsafe { entry.ifa_addr.as_ref() }?.sa_family;
    let address = match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in; one that is not aligned is read as well.
            let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, a sockaddr_in6.
            let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr))
        }
        _ => return None,
    };
    // SAFETY: an entry's name is a string that lives as long as the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    Some(InterfaceAddress {
        interface: name.to_string_lossy().into_owned(),
        address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address() {
        let loopback = InterfaceAddress {
            interface: String::from("lo"),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let addresses = addresses().unwrap();
        assert!(addresses.contains(&loopback), "{addresses:?}");
    }
}
