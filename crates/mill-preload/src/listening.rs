//! Listening where the kernel listens: what a program bound before it forked is carried out by the process that polls it or
//! accepts there.

use crate::descriptors::{self, Entry, own};
use crate::memory::errno;
use crate::{address, kernel_options, originals, stacks};
use core::ffi::c_int;
use core::net::SocketAddr;
use mill_device::AnyLink;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sockets::sockets::Sockets;
use mill_sys::netlink;

/// The listener of a descriptor that the program accepts from or polls, if the stack has a part in it: it listens there from
/// now on.
pub(crate) fn of(descriptor: c_int) -> Option<Number> {
    match descriptors::find(descriptor) {
        Entry::Listener(number) => Some(number),
        Entry::Kernel if !stacks::is_inside() && is_tcp_listener(descriptor) => begin(descriptor),
        _ => None,
    }
}

pub(crate) fn is_tcp_listener(descriptor: c_int) -> bool {
    let option = |name| kernel_options::number(descriptor, libc::SOL_SOCKET, name);
    option(libc::SO_ACCEPTCONN) == Some(1) && option(libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
}

fn begin(descriptor: c_int) -> Option<Number> {
    let address = local(descriptor).ok()?;
    if address.ip().is_loopback() || !stacks::ensure() {
        return None;
    }
    let options = kernel_options::of_listener(descriptor);
    let listening = stacks::on_home(|stack| {
        if !stack.sockets.has(address.ip()) {
            return Ok(None);
        }
        if let Entry::Listener(number) = descriptors::find(descriptor) {
            return Ok(Some(number));
        }
        // A way to the process that has the device is the library's.
        let number = own::during(|| stack.sockets.listen(address, options))?;
        if descriptors::claim(descriptor, Entry::Listener(number)) {
            return Ok(Some(number));
        }
        // Another thread was first, on a stack of its own.
        stack.sockets.close(number);
        Ok(match descriptors::find(descriptor) {
            Entry::Listener(number) => Some(number),
            _ => None,
        })
    });
    match listening {
        Ok(number) => number,
        Err(why) => {
            let error = std::io::Error::from_raw_os_error(why.0);
            crate::say::say(&format!(
                "{address} is served by the kernel alone: the stack can't listen there ({error})"
            ));
            None
        }
    }
}

/// What is left to do when the program closes a descriptor of a listener, once the kernel has closed it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Left {
    number: Number,
    /// The socket's name, which it has in all processes.
    name: u64,
}

impl Left {
    /// The program is about to close this descriptor; `None` if it is no listener's.
    pub(crate) fn of(descriptor: c_int, entry: Entry) -> Option<Self> {
        let Entry::Listener(number) = entry else {
            return None;
        };
        let name = kernel_options::cookie(descriptor).unwrap_or(0);
        Some(Self { number, name })
    }

    /// It is closed. Where other processes have the kernel's listener, what waits at the stack's is for them.
    pub(crate) fn settle(self) {
        let was_last = stacks::with(self.number, |stack| {
            let sockets = &mut stack.sockets;
            sockets.leave_listener(self.number, self.name)
        });
        if was_last == Some(true) {
            stacks::with(self.number, |stack| {
                end_those_without_socket(&mut stack.sockets);
            });
        }
    }
}

/// Ends listeners that the program has closed, if no process has their sockets any more.
pub(crate) fn end_those_without_socket(sockets: &mut Sockets<AnyLink>) {
    // Where the kernel does not say which there are, there are none.
    let there = netlink::tcp_listeners().unwrap_or_default();
    let left: Vec<u64> = sockets.left().collect();
    for name in left.into_iter().filter(|name| !there.contains(name)) {
        sockets.end_left(name);
    }
    sockets.flush();
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
