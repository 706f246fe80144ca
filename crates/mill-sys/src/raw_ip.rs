//! Whole IP packets, their headers included, by the kernel's routes (raw(7), IPPROTO_RAW).

use crate::address::SockAddr;
use crate::listener::Endpoint;
use crate::process::check;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket that sends packets of one family. Receives nothing.
#[derive(Debug)]
pub struct RawIp(OwnedFd);

impl RawIp {
    /// For IPv6, or for IPv4. `EPERM` without CAP_NET_RAW.
    pub fn new(is_v6: bool) -> io::Result<Self> {
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket(2) takes no pointer.
        let descriptor = unsafe { libc::socket(family, kind, libc::IPPROTO_RAW) };
        check(descriptor)?;
        // SAFETY: the kernel has just returned it, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Sends a packet towards `target`, which its header has, too. Waits for nothing.
    pub fn send(&self, packet: &[u8], target: IpAddr) -> io::Result<()> {
        let target = SockAddr::new(Endpoint::Ip(SocketAddr::new(target, 0)))?;
        // SAFETY: the pointers are to values that outlive the call, of the stated sizes.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                target.as_ptr(),
                target.length(),
            )
        };
        match sent {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}
