//! UDP sockets: batches of datagrams by one system call, with local address, ECN and segments as control messages
//! (ip(7), ipv6(7), udp(7)). Non-blocking; sockets of IPv6 carry no IPv4.

use crate::address::{Peer, SockAddr};
use crate::listener::{Endpoint, set_int};
use crate::process::check;
use crate::socket::option;
use control::Control;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Control messages, as bytes.
mod control;

/// A datagram to send, or several of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub bytes: &'a [u8],
    pub remote: SocketAddr,
    pub local: Option<IpAddr>,
    /// The type of service or the traffic class, with its ECN bits.
    pub class: u8,
    /// The kernel or the device cuts `bytes` into datagrams of this length (UDP_SEGMENT).
    pub segment_bytes: Option<u16>,
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub bytes: &'a [u8],
    pub remote: SocketAddr,
    /// The address that it was sent to; `None` if the kernel did not tell.
    pub local: Option<IpAddr>,
    pub class: u8,
}

/// Opens a socket. Costs seven system calls at the most.
pub fn open(
    local: SocketAddr,
    remote: Option<SocketAddr>,
    receive_buffer_bytes: Option<usize>,
) -> io::Result<OwnedFd> {
    let address = SockAddr::new(Endpoint::Ip(local))?;
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointer.
    let descriptor = unsafe { libc::socket(address.family(), kind, 0) };
    check(descriptor)?;
    // SAFETY: the kernel just gave us this descriptor, nothing else owns it.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let socket = owned.as_fd();
    if local.is_ipv6() {
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
    } else {
        set_int(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        set_int(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    }
    if let Some(bytes) = receive_buffer_bytes {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    }
    address.bind(socket)?;
    if let Some(remote) = remote {
        SockAddr::new(Endpoint::Ip(remote))?.connect(socket)?;
    }
    Ok(owned)
}

/// Datagrams that the kernel dropped because the socket's receive buffer was full (SO_MEMINFO, Linux 4.12).
pub fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let figures: [u32; MEMINFO_COUNT] = option(socket, libc::SOL_SOCKET, SO_MEMINFO)?;
    Ok(figures[MEMINFO_DROPS])
}

/// Sends as many of the first [`BATCH_MAX`] datagrams as there is room for; returns how many. An error is the first one's,
/// or that of one sent before, and none was sent then. A connected socket sends to its peer alone, whose route the kernel
/// has at hand.
pub fn send(
    socket: BorrowedFd<'_>,
    batch: &[Outgoing<'_>],
    is_connected: bool,
) -> io::Result<usize> {
    let mut names = [SockAddr::empty(); BATCH_MAX];
    let mut parts = [NO_PART; BATCH_MAX];
    let mut controls = [Control::EMPTY; BATCH_MAX];
    let mut messages = no_messages();
    let count = batch.len().min(BATCH_MAX);
    let room = messages.iter_mut().zip(&mut names).zip(&mut parts);
    let room = room.zip(&mut controls);
    for ((((message, name), part), control), datagram) in room.zip(batch) {
        part.iov_base = datagram.bytes.as_ptr().cast_mut().cast();
        part.iov_len = datagram.bytes.len();
        let header = &mut message.msg_hdr;
        header.msg_iov = part;
        header.msg_iovlen = 1;
        if !is_connected {
            *name = SockAddr::new(Endpoint::Ip(datagram.remote))?;
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.length();
        }
        control.describe(datagram);
        if control.len() > 0 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = control.len();
        }
    }
    let vlen = u32::try_from(count).unwrap_or(0);
    let pointer = messages.as_mut_ptr();
    // SAFETY: the first `vlen` messages point to `names`, `parts`, `controls` and the batch's bytes, which all live
    // through the call and have the stated sizes; the kernel only reads them.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), pointer, vlen, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Room for a batch of the largest datagrams. The kernel gives it pages as they are used.
#[derive(Debug)]
pub struct ReceiveBuffers {
    bytes: Vec<u8>,
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH_MAX * DATAGRAM_BYTES_MAX],
        }
    }
}

impl ReceiveBuffers {
    /// Receives at most `count_max` datagrams, and [`BATCH_MAX`], and lends them to `take` in their order; returns how
    /// many. `WouldBlock` if there are none.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        count_max: usize,
        mut take: impl FnMut(Incoming<'_>),
    ) -> io::Result<usize> {
        let mut names = [SockAddr::empty(); BATCH_MAX];
        let mut parts = [NO_PART; BATCH_MAX];
        let mut controls = [Control::EMPTY; BATCH_MAX];
        let mut messages = no_messages();
        let room = messages.iter_mut().zip(&mut names).zip(&mut parts);
        let room = room.zip(&mut controls);
        let pieces = self.bytes.chunks_exact_mut(DATAGRAM_BYTES_MAX);
        for ((((message, name), part), control), piece) in room.zip(pieces) {
            part.iov_base = piece.as_mut_ptr().cast();
            part.iov_len = piece.len();
            let header = &mut message.msg_hdr;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_name = name.as_out().0.cast();
            header.msg_namelen = name.length();
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = Control::SIZE;
        }
        let vlen = u32::try_from(count_max.min(BATCH_MAX)).unwrap_or(0);
        let pointer = messages.as_mut_ptr();
        let no_timeout = std::ptr::null_mut();
        // SAFETY: the first `vlen` messages point to `names`, `parts`, `controls` and pieces of `self.bytes`, which all
        // live through the call, are not looked at meanwhile, and have the stated sizes.
        let received = unsafe { libc::recvmmsg(socket.as_raw_fd(), pointer, vlen, 0, no_timeout) };
        let count = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        let pieces = self.bytes.chunks_exact(DATAGRAM_BYTES_MAX);
        let came = messages.iter().zip(&names).zip(&controls).zip(pieces);
        for (((message, name), control), piece) in came.take(count) {
            let len = usize::try_from(message.msg_len).unwrap_or(0);
            let Peer::Ip(remote) = name.peer() else {
                continue;
            };
            let (local, class) = control.told(message.msg_hdr.msg_controllen);
            take(Incoming {
                bytes: piece.get(..len).unwrap_or(piece),
                remote,
                local,
                class,
            });
        }
        Ok(count)
    }
}

fn no_messages() -> [libc::mmsghdr; BATCH_MAX] {
    // SAFETY: mmsghdr is numbers and pointers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

const NO_PART: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Datagrams of one system call: its cost is spread over enough of them, and the room for them stays small.
pub const BATCH_MAX: usize = 32;

/// Bytes of the largest datagram, rounded up.
const DATAGRAM_BYTES_MAX: usize = 1 << 16;

/// linux/sock_diag.h and asm-generic/socket.h: SK_MEMINFO_VARS, SK_MEMINFO_DROPS.
const MEMINFO_COUNT: usize = 9;
const MEMINFO_DROPS: usize = 8;
const SO_MEMINFO: i32 = 55;
