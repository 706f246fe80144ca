//! Addresses that the stack has and the kernel does not (TAP devices and memifs): the kernel's sockets may be bound to them, too.

use crate::{kernel_options, originals};
use core::ffi::c_int;
use core::net::IpAddr;
use mill_keeper::request::ADDRESSES;
use std::sync::OnceLock;

static OWN: OnceLock<Vec<IpAddr>> = OnceLock::new();

/// At the beginning of the process.
pub(crate) fn begin() {
    let text = std::env::var(ADDRESSES).unwrap_or_default();
    let addresses = text.split_whitespace().filter_map(|word| word.parse().ok());
    OWN.get_or_init(|| addresses.collect());
}

/// Lets a stream be bound to an address that the kernel does not have, if the stack has it (`IP_FREEBIND`, ip(7)); whether it has.
pub(crate) fn allow(descriptor: c_int, address: IpAddr) -> bool {
    let is_own = OWN
        .get()
        .is_some_and(|own| own.contains(&address.to_canonical()));
    let kind = kernel_options::number(descriptor, libc::SOL_SOCKET, libc::SO_TYPE);
    if !is_own || kind != Some(libc::SOCK_STREAM) {
        return false;
    }
    let on: c_int = 1;
    // SAFETY: the value lives through the call, and has the stated size. Linux takes the option for sockets of IPv6, too.
    let result = unsafe {
        originals::setsockopt(
            descriptor,
            libc::IPPROTO_IP,
            libc::IP_FREEBIND,
            (&raw const on).cast(),
            4,
        )
    };
    result == 0
}
