//! Sending frames by an interface, each with a header that leaves checksum and segmentation to the device (packet(7),
//! `PACKET_VNET_HDR` of linux/if_packet.h; the header is that of linux/virtio_net.h).

use crate::process::check;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of the header before each frame, as of TAP devices ([`crate::tap::VNET_HEADER_LEN`]).
pub const VNET_HEADER_LEN: usize = crate::tap::VNET_HEADER_LEN;

/// A socket that sends by the interface with this index and receives nothing. Non-blocking. `EPERM` without CAP_NET_RAW.
///
/// Not past the queueing discipline (`PACKET_QDISC_BYPASS`): on that way the kernel drops what it would have to cut itself, as the device
/// does not any more (`__dev_direct_xmit`).
pub fn create(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Of protocol 0: nothing is received.
    // SAFETY: socket(2) takes no pointer.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    check(descriptor)?;
    // SAFETY: the kernel has just returned it, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    set(&socket, libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
    // A few segments of 64 KiB, with what the kernel counts beside. Above the limit for users; where it can't be had, frames wait.
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BYTES);
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET.cast_unsigned().try_into().unwrap_or(0),
        sll_protocol: 0,
        sll_ifindex: i32::try_from(index).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0);
    // SAFETY: the address lives through the call, and has the stated length.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// Sends one frame, header first, in pieces. `WouldBlock` if the socket has no room for it; `ENOBUFS` if the device's queue was full and dropped it. One system
/// call, in which the driver, or the receiver on this machine, takes the frame.
pub fn send(socket: BorrowedFd<'_>, pieces: &[IoSlice<'_>]) -> io::Result<()> {
    let count = libc::c_int::try_from(pieces.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: an IoSlice has the layout of iovec, and the pieces outlive the call.
    let sent = unsafe { libc::writev(socket.as_raw_fd(), pieces.as_ptr().cast(), count) };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: i32) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or(0);
    let pointer = (&raw const value).cast();
    // SAFETY: the value lives through the call, and has the stated length.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, len) })
}

/// linux/if_packet.h.
const PACKET_VNET_HDR: libc::c_int = 15;

const SEND_BYTES: i32 = 4 << 20;
