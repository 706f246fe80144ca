//! TAP devices: Ethernet interfaces whose other end is a descriptor (the kernel's Documentation/networking/tuntap.rst).
//!
//! Each read returns one frame and each write sends one, after a header of `VNET_HEADER_LEN` bytes that describes the
//! pending checksum and segmentation (virtio 1.2, section 5.1.6; the kernel's if_tun.h and virtio_net.h).

use crate::interface::request;
use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of the header: flags, type of segmentation, and four 16-bit numbers. With this length, unlike with the one of
/// 12 bytes, the IP header after 14 bytes of Ethernet is aligned to four.
pub const VNET_HEADER_LEN: usize = 10;

/// A call that failed, with its error.
#[derive(Debug)]
pub struct TapError {
    pub call: &'static str,
    pub error: io::Error,
}

/// The work that the reader of frames takes over from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// None: frames are complete, and no longer than the MTU.
    Nothing,
    /// Checksums may be partial, and TCP frames up to 64 KiB long.
    ChecksumAndSegmentation,
}

/// Makes an interface of this name in the caller's network namespace; an empty name has the kernel choose one. Fails if
/// it exists. It is removed when the descriptor, which is non-blocking and close-on-exec, is closed.
pub fn create(name: &str, offload: Offload) -> Result<OwnedFd, TapError> {
    open(name, offload, libc::IFF_TUN_EXCL)
}

/// The same with several queues, a descriptor each; it is removed when the last one is closed. The kernel delivers a
/// flow's frames to the queue at which a frame of the flow was sent last, and those of an unknown flow by a hash.
pub fn create_queues(name: &str, offload: Offload, count: u32) -> Result<Vec<OwnedFd>, TapError> {
    let several = libc::IFF_MULTI_QUEUE;
    let first = open(name, offload, several | libc::IFF_TUN_EXCL)?;
    let name = self::name(first.as_fd()).map_err(failed("ioctl(TUNGETIFF)"))?;
    let mut queues = vec![first];
    for _ in 1..count {
        queues.push(open(&name, offload, several)?);
    }
    Ok(queues)
}

fn open(name: &str, offload: Offload, kind: libc::c_int) -> Result<OwnedFd, TapError> {
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path is a NUL-terminated literal.
    let number = unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) };
    check(number).map_err(failed("open(/dev/net/tun)"))?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let device = unsafe { OwnedFd::from_raw_fd(number) };
    attach(device.as_fd(), name, kind).map_err(failed("ioctl(TUNSETIFF)"))?;
    set_header_len(device.as_fd()).map_err(failed("ioctl(TUNSETVNETHDRSZ)"))?;
    let features = match offload {
        Offload::Nothing => 0,
        Offload::ChecksumAndSegmentation => {
            libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN
        }
    };
    let features = libc::c_ulong::from(features);
    // SAFETY: TUNSETOFFLOAD takes a number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, features) })
        .map_err(failed("ioctl(TUNSETOFFLOAD)"))?;
    Ok(device)
}

/// The name of a descriptor's interface.
pub fn name(device: BorrowedFd<'_>) -> io::Result<String> {
    let mut request = request("")?;
    // SAFETY: TUNGETIFF writes an ifreq, which the pointer is to.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
    let bytes = request.ifr_name.map(libc::c_char::cast_unsigned);
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Reads one frame with its header; `WouldBlock` if there is none. One system call. A frame is truncated to the buffer,
/// so 64 KiB and the headers have to fit.
pub fn read(device: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`, which outlives the call.
    let count = unsafe { libc::read(device.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Writes one frame with its header; `WouldBlock` if the kernel has no room for it. One system call, in which the
/// kernel's side usually processes the frame.
pub fn write(device: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `frame`, which outlives the call.
    check(unsafe { libc::write(device.as_raw_fd(), frame.as_ptr().cast(), frame.len()) })
}

fn attach(device: BorrowedFd<'_>, name: &str, kind: libc::c_int) -> io::Result<()> {
    let mut request = request(name)?;
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | kind;
    request.ifr_ifru.ifru_flags = truncated(flags);
    // SAFETY: TUNSETIFF reads and writes an ifreq, which the pointer is to.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the flags of an ifreq are the low 16 bits; IFF_TUN_EXCL is the highest of them"
)]
const fn truncated(flags: i32) -> i16 {
    flags as i16
}

fn set_header_len(device: BorrowedFd<'_>) -> io::Result<()> {
    let len = libc::c_int::try_from(VNET_HEADER_LEN).expect("10 fits");
    // SAFETY: TUNSETVNETHDRSZ reads an int, which the pointer is to.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) })
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> TapError {
    move |error| TapError { call, error }
}

#[cfg(test)]
mod tests;
