//! Network interfaces: their addresses (getifaddrs(3)) and settings (netdevice(7)), in the network namespace of the caller.

use crate::process::check;
use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// Restricting a socket to one interface.
mod binding;
pub use binding::bind_to;

/// Drivers, queues, rings and segmentation.
mod ethtool;
pub use ethtool::{
    Channels, Driver, RingSizes, channels, driver, has_segmentation, merges_segments, ring_sizes,
    strips_vlan_tags,
};

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's name, as in ip-link(8).
    pub interface: String,
    pub address: IpAddr,
    /// Length of the link's network prefix.
    pub prefix_len: u8,
}

/// The IP addresses of this machine, in the network namespace of the caller.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a local; the list that it is set to is freed below.
    check(unsafe { libc::getifaddrs(&raw mut list) })?;
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
    // SAFETY: an entry's address is null or a socket address, as long as its family says.
    let address = unsafe { ip_of(entry.ifa_addr) }?;
    // SAFETY: the same holds for the mask.
    let ones = match unsafe { ip_of(entry.ifa_netmask) } {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None => 128,
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    // SAFETY: an entry's name is a string that lives as long as the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    Some(InterfaceAddress {
        interface: name.to_string_lossy().into_owned(),
        address,
        prefix_len: u8::try_from(ones.min(bits)).unwrap_or(u8::MAX),
    })
}

/// # Safety
///
/// The address is null or a socket address, as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller says so.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in; one that is not aligned is read as well.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let bits = u32::from_be(address.sin_addr.s_addr);
            Some(IpAddr::V4(Ipv4Addr::from(bits)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, a sockaddr_in6.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

/// The index of an interface.
pub fn index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the pointer is to a NUL-terminated string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The current name of the interface with this index: it may have been renamed.
pub fn name(index: u32) -> io::Result<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the length that the call writes at most, the NUL at the end included.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written a string that ends within the buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}

/// The names of all interfaces.
pub fn names() -> io::Result<Vec<String>> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    // proc(5): two header lines, then one line for each interface.
    let lines = table.lines().skip(2);
    let named = lines.filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    Ok(named.collect())
}

/// The Ethernet address of an interface.
pub fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let mut request = request(name)?;
    control(libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: SIOCGIFHWADDR has written this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let mut bytes = [0; 6];
    for (byte, from) in bytes.iter_mut().zip(address.sa_data) {
        *byte = from.cast_unsigned();
    }
    Ok(bytes)
}

/// Sets the MTU.
pub fn set_mtu(name: &str, mtu: u16) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_mtu = i32::from(mtu);
    control(libc::SIOCSIFMTU, &mut request)
}

/// Brings an interface up.
pub fn set_up(name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    control(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS has written this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let up = i16::try_from(libc::IFF_UP).expect("IFF_UP is 1");
    request.ifr_ifru.ifru_flags = flags | up;
    control(libc::SIOCSIFFLAGS, &mut request)
}

/// An empty request about an interface; a name of more than 15 bytes is invalid.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is plain numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays the NUL that ends it.
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

/// Requests about interfaces accept any socket; this one sends nothing.
fn control(call: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: the calls of this file and those below read and write an ifreq, which the pointer is to, and what that
    // points to in its turn, which its maker keeps through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw mut *request) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address() {
        let loopback = InterfaceAddress {
            interface: String::from("lo"),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            prefix_len: 8,
        };
        let addresses = addresses().unwrap();
        assert!(addresses.contains(&loopback), "{addresses:?}");
    }

    #[test]
    fn names_and_indices_belong_together() {
        let names = names().unwrap();
        assert!(names.iter().any(|name| name == "lo"), "{names:?}");
        for expected in names {
            assert_eq!(name(index(&expected).unwrap()).unwrap(), expected);
        }
        let unknown = name(u32::MAX).unwrap_err();
        assert_eq!(unknown.raw_os_error(), Some(libc::ENXIO));
    }
}
