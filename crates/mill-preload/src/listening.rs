//! Listening where the kernel listens: what a program bound before it forked is carried out by the process that polls it or
//! accepts there.

use crate::descriptors::{self, Entry};
use crate::memory::errno;
use crate::{address, kernel_options, originals, stack};
use core::ffi::c_int;
use core::net::SocketAddr;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// The listener of a descriptor that the program accepts from or polls, if the stack has a part in it: it listens there from
/// now on.
pub(crate) fn of(descriptor: c_int) -> Option<Number> {
    match descriptors::find(descriptor) {
        Entry::Listener(number) => Some(number),
        Entry::Kernel if !stack::is_inside() && is_tcp_listener(descriptor) => begin(descriptor),
        _ => None,
    }
}

fn is_tcp_listener(descriptor: c_int) -> bool {
    let option = |name| kernel_options::number(descriptor, libc::SOL_SOCKET, name);
    option(libc::SO_ACCEPTCONN) == Some(1) && option(libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
}

fn begin(descriptor: c_int) -> Option<Number> {
    let address = local(descriptor).ok()?;
    if address.ip().is_loopback() || !stack::ensure() {
        return None;
    }
    let options = kernel_options::of_listener(descriptor);
    let listening = stack::on(|stack| {
        if !stack.sockets.has(address.ip()) {
            return Ok(None);
        }
        stack.sockets.listen(address, options).map(Some)
    });
    match listening {
        Ok(number) => {
            let number = number?;
            descriptors::set(descriptor, Entry::Listener(number));
            Some(number)
        }
        Err(why) => {
            let error = std::io::Error::from_raw_os_error(why.0);
            crate::say::say(&format!(
                "{address} is served by the kernel alone: the stack can't listen there ({error})"
            ));
            None
        }
    }
}

/// Whether the kernel has connected a socket.
pub(crate) fn has_peer(descriptor: c_int) -> bool {
    let mut bytes = [0_u8; 128];
    let mut len = 128;
    // SAFETY: the pointers are to locals, of the stated size.
    let result =
        unsafe { originals::getpeername(descriptor, bytes.as_mut_ptr().cast(), &raw mut len) };
    result == 0
}

/// getsockname(2).
pub(crate) fn local(descriptor: c_int) -> Result<SocketAddr, Errno> {
    let mut bytes = [0_u8; 128];
    let mut len = 128;
    // SAFETY: the pointers are to locals, of the stated size.
    let result =
        unsafe { originals::getsockname(descriptor, bytes.as_mut_ptr().cast(), &raw mut len) };
    if result == -1 {
        return Err(errno());
    }
    address::parse_bytes(&bytes).ok_or(Errno::FAMILY)
}
