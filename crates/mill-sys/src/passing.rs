//! Datagrams that carry descriptors between processes and threads (unix(7), SCM_RIGHTS), and memory that is passed as a
//! descriptor.

use crate::process::check;
use crate::socket::{set_option, timeval};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// The number of descriptors that one datagram can carry (SCM_MAX_FD of the kernel's scm.h).
pub const DESCRIPTORS_MAX: usize = 253;

/// A pair of connected sockets that preserve datagram boundaries and order (SOCK_SEQPACKET); blocking.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the pointer is to an array of two that outlives the call.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    let [first, second] = ends;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let first = unsafe { OwnedFd::from_raw_fd(first) };
    // SAFETY: as above.
    let second = unsafe { OwnedFd::from_raw_fd(second) };
    Ok((first, second))
}

/// Sends one datagram with up to [`DESCRIPTORS_MAX`] descriptors. The kernel duplicates them: the caller keeps its own.
/// Waits while the peer's queue is full, at most for the time of [`set_send_timeout`].
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let mut control = ControlBuffer::new();
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut message = control.message(&mut part);
    if numbers.is_empty() {
        message.msg_control = std::ptr::null_mut();
        message.msg_controllen = 0;
    } else {
        message.msg_controllen = control_space(numbers.len());
        emit_rights(&message, &numbers);
    }
    loop {
        // SAFETY: the message points to `bytes` and `control`, which outlive the call and have the stated sizes.
        let sent =
            unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent != -1 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives one datagram: its length in `buffer`, and its descriptors, which are close-on-exec. (0, none) is an empty
/// datagram or the end of the connection. A datagram that does not fit is an error.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = ControlBuffer::new();
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut message = control.message(&mut part);
    let received = loop {
        // SAFETY: the message points to `buffer` and `control`, which outlive the call and have the stated sizes.
        let received =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        if received != -1 {
            break received;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let descriptors = parse_rights(&message);
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    Ok((usize::try_from(received).unwrap_or(0), descriptors))
}

/// Limits the time that [`send`] waits for a peer that does not read.
pub fn set_send_timeout(socket: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_SNDTIMEO,
        &timeval(timeout),
    )
}

/// A memfd, close-on-exec; `name` is only for /proc.
pub fn memory_file(name: &CStr) -> io::Result<std::fs::File> {
    memory_file_with(name, libc::MFD_CLOEXEC)
}

/// The same, with the permission to seal its length.
pub(crate) fn sealable_memory_file(name: &CStr) -> io::Result<std::fs::File> {
    memory_file_with(name, libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
}

fn memory_file_with(name: &CStr, flags: libc::c_uint) -> io::Result<std::fs::File> {
    // SAFETY: the pointer is to a NUL-terminated string that outlives the call.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    check(descriptor)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(std::fs::File::from(unsafe {
        OwnedFd::from_raw_fd(descriptor)
    }))
}

/// Room for one control message with [`DESCRIPTORS_MAX`] descriptors, aligned as cmsg(3) requires.
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_SIZE]);

/// A header of 16 bytes (cmsghdr on 64 bits) and four bytes for each descriptor, rounded up to 8.
const CONTROL_SIZE: usize = (16 + 4 * DESCRIPTORS_MAX).next_multiple_of(8);

impl ControlBuffer {
    fn new() -> Self {
        Self([0; CONTROL_SIZE])
    }

    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: a msghdr is numbers and pointers, for which zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_SIZE;
        message
    }
}

fn control_space(descriptors: usize) -> usize {
    // SAFETY: CMSG_SPACE is arithmetic.
    let space = unsafe { libc::CMSG_SPACE(rights_len(descriptors)) };
    usize::try_from(space).expect("a control message is small")
}

fn rights_len(descriptors: usize) -> u32 {
    u32::try_from(descriptors * size_of::<RawFd>()).expect("a control message is small")
}

fn emit_rights(message: &libc::msghdr, numbers: &[RawFd]) {
    // SAFETY: the message's control buffer is CONTROL_SIZE bytes, more than one header.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_LEN is arithmetic.
    let len = unsafe { libc::CMSG_LEN(rights_len(numbers.len())) };
    let content = libc::cmsghdr {
        cmsg_len: usize::try_from(len).expect("a control message is small"),
        cmsg_level: libc::SOL_SOCKET,
        cmsg_type: libc::SCM_RIGHTS,
    };
    // SAFETY: the header is inside the control buffer, and aligned as that is.
    unsafe { header.write(content) };
    // SAFETY: as above.
    let data = unsafe { libc::CMSG_DATA(header) };
    let size = size_of_val(numbers);
    // SAFETY: at most DESCRIPTORS_MAX numbers (the caller checked), for which the buffer has room after the
    // header; the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), data, size) };
}

fn parse_rights(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the kernel filled in the control buffer and its length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give headers inside the buffer, or null.
        let content = unsafe { header.read() };
        if content.cmsg_level == libc::SOL_SOCKET && content.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: CMSG_LEN is arithmetic.
            let empty = unsafe { libc::CMSG_LEN(0) };
            let empty = usize::try_from(empty).expect("a header is small");
            let count = content.cmsg_len.saturating_sub(empty) / size_of::<RawFd>();
            // SAFETY: the header is inside the buffer.
            let data = unsafe { libc::CMSG_DATA(header) };
            for index in 0..count {
                // SAFETY: `count` numbers follow the header.
                let at = unsafe { data.add(index * size_of::<RawFd>()) };
                // SAFETY: as above; the read does not ask for alignment.
                let number = unsafe { at.cast::<RawFd>().read_unaligned() };
                // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
                descriptors.push(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
        // SAFETY: `header` is one that the message holds.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    descriptors
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn datagrams_stay_whole_and_in_order() {
        let (left, right) = pair().unwrap();
        send(left.as_fd(), b"one", &[]).unwrap();
        send(left.as_fd(), b"", &[]).unwrap();
        send(left.as_fd(), b"three", &[]).unwrap();
        let mut buffer = [0; 16];
        for expected in [&b"one"[..], b"", b"three"] {
            let (len, descriptors) = receive(right.as_fd(), &mut buffer).unwrap();
            assert_eq!(buffer.get(..len), Some(expected));
            assert!(descriptors.is_empty());
        }
        drop(left);
        assert_eq!(receive(right.as_fd(), &mut buffer).unwrap().0, 0);
    }

    #[test]
    fn descriptors_arrive_as_the_same_open_file() {
        let (left, right) = pair().unwrap();
        let mut file = memory_file(c"test").unwrap();
        send(left.as_fd(), b"x", &[file.as_fd(), file.as_fd()]).unwrap();
        let mut buffer = [0; 16];
        let (_, descriptors) = receive(right.as_fd(), &mut buffer).unwrap();
        assert_eq!(descriptors.len(), 2);
        for descriptor in descriptors {
            let mut same = std::fs::File::from(descriptor);
            same.write_all(b"ab").unwrap();
        }
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abab");
    }

    #[test]
    fn as_many_descriptors_as_the_kernel_allows_are_passed_and_one_more_is_refused() {
        let (left, right) = pair().unwrap();
        let file = memory_file(c"test").unwrap();
        let most = vec![file.as_fd(); DESCRIPTORS_MAX];
        send(left.as_fd(), b"x", &most).unwrap();
        assert_eq!(
            receive(right.as_fd(), &mut [0; 1]).unwrap().1.len(),
            DESCRIPTORS_MAX
        );
        let more = vec![file.as_fd(); DESCRIPTORS_MAX + 1];
        assert!(send(left.as_fd(), b"x", &more).is_err());
    }

    #[test]
    fn a_datagram_that_does_not_fit_is_an_error() {
        let (left, right) = pair().unwrap();
        send(left.as_fd(), b"long", &[]).unwrap();
        assert!(receive(right.as_fd(), &mut [0; 3]).is_err());
    }
}
