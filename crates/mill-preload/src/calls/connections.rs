//! Connections: accept(2), connect(2), their addresses and their ends.

use super::numbers::{close, given};
use super::watching::take_over;
use crate::descriptors::{self, Entry, own};
use crate::memory::{done, returned};
use crate::placeholder::{self, Family};
use crate::signals::Handled;
use crate::stack::{Stack, now};
use crate::stacks;
use crate::waiting::{self, Kernel, Wait};
use crate::{
    address, borrowing, early_shutdown, kernel_options, kernel_queue, listening, originals,
};
use core::ffi::c_int;
use core::net::SocketAddr;
use libc::{pollfd, sockaddr, socklen_t};
use mill_sockets::errno::Errno;
use mill_sockets::readiness::Readiness;
use mill_sockets::slab::Number;
use mill_sockets::socket::Options;
use mill_sockets::sockets::closing::Half;
use smallvec::smallvec;

/// # Safety
/// As accept4(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn accept4(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let mut handled = Handled::by_this_thread();
    let flags_known = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    if flags & !flags_known != 0 || matches!(descriptors::find(fd), Entry::Stream(_)) {
        return done(Err(Errno::INVALID));
    }
    let Some(listener) = listening::of(fd) else {
        // SAFETY: the caller's promise.
        return given(unsafe { originals::accept4(fd, into, len, flags) });
    };
    // SAFETY: the caller's promise.
    let at_kernel = || unsafe { originals::accept4(fd, into, len, flags) };
    let accepted = loop {
        match accept_here_or_there((fd, flags), listener, &mut handled) {
            Ok(Accepted::WaitingThere) => {
                if let Some(taken) = kernel_queue::take(fd, at_kernel) {
                    return done(taken.map(given));
                }
            }
            accepted => break accepted,
        }
    };
    match accepted {
        Ok(Accepted::Here(descriptor, peer)) => {
            if into.is_null() {
                return descriptor;
            }
            // SAFETY: the caller's promise.
            let stored = unsafe { address::store(peer, into, len) };
            if stored.is_err() {
                // As in Linux, the connection is lost.
                // SAFETY: the call takes no pointer.
                unsafe { close(descriptor) };
            }
            done(stored.map(|()| descriptor))
        }
        Ok(_) => given(at_kernel()),
        Err(errno) => done(Err(errno)),
    }
}

/// # Safety
/// As accept(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn accept(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(fd, into, len, 0) }
}

/// Where there is a connection to accept.
enum Accepted {
    Here(c_int, SocketAddr),
    /// At the kernel, or nowhere: its answer, which does not wait, is the program's.
    There,
    /// At the kernel, whose call would wait if another one took it first.
    WaitingThere,
}

fn accept_here_or_there(
    (fd, flags): (c_int, c_int),
    listener: Number,
    handled: &mut Handled,
) -> Result<Accepted, Errno> {
    let first = stacks::with(listener, |stack| accept_here(stack, listener, flags));
    if let Some(accepted) = first.flatten() {
        return accepted;
    }
    // SAFETY: the command takes no argument.
    let status = unsafe { originals::fcntl(fd, libc::F_GETFL, 0) };
    if status & libc::O_NONBLOCK != 0 {
        return Ok(Accepted::There);
    }
    let mut kernel = smallvec![pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }];
    let timeout = stacks::on(listener, |stack| {
        Ok(stack.sockets.options(listener)?.receive_timeout)
    })?;
    loop {
        let wait = Wait::of_call(listener, timeout, *handled, &mut kernel);
        let found = waiting::until(wait, |held, _, kernel| match kernel {
            Kernel::Ready(1..) => Some(Ok(Accepted::WaitingThere)),
            _ => accept_here(held.of(listener)?, listener, flags),
        });
        if !waiting::is_restarted(&found, handled, timeout) {
            return found?.unwrap_or(Err(Errno::AGAIN));
        }
    }
}

fn accept_here(
    stack: &mut Stack,
    listener: Number,
    flags: c_int,
) -> Option<Result<Accepted, Errno>> {
    if !stack.sockets.readiness(listener).has_any(Readiness::IN) {
        return None;
    }
    // Without a descriptor the connection waits on, as in Linux.
    let is_close_on_exec = flags & libc::SOCK_CLOEXEC != 0;
    let descriptor = match placeholder::duplicate(Family::Ipv4, is_close_on_exec) {
        Ok(descriptor) => descriptor,
        Err(errno) => return Some(Err(errno)),
    };
    let accepted = accept_as(stack, listener, descriptor, flags);
    if !matches!(accepted, Ok(Some(_))) {
        // SAFETY: it was just made, and nothing else knows it.
        unsafe { originals::close(descriptor) };
    }
    accepted.transpose()
}

fn accept_as(
    stack: &mut Stack,
    listener: Number,
    descriptor: c_int,
    flags: c_int,
) -> Result<Option<Accepted>, Errno> {
    let Some(number) = stack.sockets.accept(listener)? else {
        return Ok(None);
    };
    if !descriptors::set(descriptor, Entry::Stream(number)) {
        stack.sockets.close(number);
        return Err(Errno::NO_DESCRIPTOR);
    }
    let waits = flags & libc::SOCK_NONBLOCK == 0;
    stack.sockets.set_waits(number, waits)?;
    // The peer may have reset the connection by now, and its address is still known.
    let peer = stack.sockets.former_peer(number)?;
    Ok(Some(Accepted::Here(descriptor, peer)))
}

/// # Safety
/// As connect(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn connect(
    fd: c_int,
    target: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open(fd, target, len, false) }
}

/// connect(2), or the first half of sendto(2) that connects.
///
/// # Safety
/// As connect(2).
unsafe fn open(fd: c_int, target: *const sockaddr, len: socklen_t, is_fast: bool) -> c_int {
    let handled = Handled::by_this_thread();
    if let Entry::Fresh(fresh) = descriptors::peek(fd)
        && c_int::try_from(len).is_ok()
    {
        // SAFETY: the caller's promise.
        let address = unsafe { address::parse(target, len) };
        let address = address.filter(|address| is_reached(*address) && fresh.may_reach(*address));
        if let Some(address) = address {
            let mut options = fresh.options();
            options.listen.each.fast_open |= is_fast;
            return done(connect_here((fd, handled), address, options, (None, &[])));
        }
    }
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            if unsafe { address::is_unspecified(target, len) } {
                return done(stacks::on(number, |stack| {
                    stack.sockets.dissolve(number)?;
                    stack.wake();
                    Ok(0)
                }));
            }
            // SAFETY: the caller's promise.
            let target = unsafe { address::parse(target, len) };
            return done(connect_again(fd, (number, handled), target));
        }
        Entry::Lost => return done(Err(Errno::NOT_CONNECTED)),
        Entry::Borrowed(_) => return done(Err(Errno::IS_CONNECTED)),
        Entry::Kernel if !stacks::is_inside() && c_int::try_from(len).is_ok() => {}
        // SAFETY: the caller's promise.
        _ => return unsafe { originals::connect(fd, target, len) },
    }
    // SAFETY: the caller's promise.
    let address = unsafe { address::parse(target, len) };
    match address.filter(|address| is_ours(fd, *address)) {
        Some(address) => {
            let mut options = kernel_options::of_stream(fd);
            options.listen.each.fast_open |= is_fast;
            let shut = early_shutdown::of(fd);
            done(connect_here(
                (fd, handled),
                address,
                options,
                (bound(fd), &shut),
            ))
        }
        None => {
            // SAFETY: the caller's promise.
            if unsafe { address::is_unspecified(target, len) } {
                early_shutdown::forget(fd);
            }
            // SAFETY: as above.
            unsafe { originals::connect(fd, target, len) }
        }
    }
}

/// Whether connect(2) to this target is the stack's.
///
/// # Safety
/// As connect(2).
pub(super) unsafe fn is_stacks(fd: c_int, target: *const sockaddr, len: socklen_t) -> bool {
    // SAFETY: the caller's promise.
    let target = unsafe { address::parse(target, len) };
    match (descriptors::peek(fd), target) {
        (Entry::Stream(_), _) => true,
        (Entry::Fresh(fresh), Some(target)) => fresh.may_reach(target) && is_reached(target),
        (Entry::Kernel, Some(target)) => !stacks::is_inside() && is_ours(fd, target),
        _ => false,
    }
}

/// What sendto(2) with `MSG_FASTOPEN` does first. Without a cookie of the target what is sent follows the handshake, as in Linux.
///
/// # Safety
/// As connect(2).
pub(super) unsafe fn connect_to_send(
    fd: c_int,
    target: *const sockaddr,
    len: socklen_t,
) -> Result<c_int, Errno> {
    // SAFETY: the caller's promise.
    if unsafe { address::is_unspecified(target, len) } {
        return Err(Errno::NOT_SUPPORTED);
    }
    // SAFETY: as above.
    returned(unsafe { open(fd, target, len, true) })
}

/// Whether there is a stack that reaches the target.
fn is_reached(target: SocketAddr) -> bool {
    let ip = target.ip().to_canonical();
    if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() {
        return false;
    }
    stacks::ensure() && stacks::on_home(|stack| Ok(stack.sockets.reaches(ip))) == Ok(true)
}

/// Whether the stack is to open a connection: of TCP, and to a target that it reaches.
fn is_ours(fd: c_int, target: SocketAddr) -> bool {
    let ip = target.ip().to_canonical();
    let option = |name| kernel_options::number(fd, libc::SOL_SOCKET, name);
    if ip.is_ipv4() && target.is_ipv6() {
        let v6_only = kernel_options::number(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
        if v6_only != Some(0) {
            return false;
        }
    }
    option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        && option(libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
        && is_reached(target)
}

/// Opens a connection from a socket with these options, bound to `source` if that was done, and shut down in these directions.
fn connect_here(
    (fd, handled): (c_int, Handled),
    target: SocketAddr,
    options: Options,
    (source, shut): (Option<SocketAddr>, &[Half]),
) -> Result<c_int, Errno> {
    match (options.is_ipv6, target.is_ipv6()) {
        (true, false) => return Err(Errno::INVALID),
        (false, true) => return Err(Errno::FAMILY),
        _ => {}
    }
    let waits = options.waits;
    let (number, is_deferred) = stacks::on_home(|stack| {
        // A way to the process that has the device is the library's.
        let number = own::during(|| stack.sockets.connect(target, source, options))?;
        for half in shut {
            stack.sockets.shut_before(number, *half);
        }
        descriptors::set(fd, Entry::Stream(number));
        // SYNs of many connections in a row leave together, as what is written to them.
        stack.flush_now_and_then();
        Ok((number, stack.sockets.is_deferred(number)))
    })?;
    take_over(fd, number);
    if is_deferred {
        return Ok(0);
    }
    if !waits {
        return Err(Errno::IN_PROGRESS);
    }
    wait_for_handshake((number, handled), Errno::IN_PROGRESS)
}

/// What the program has bound the socket to.
fn bound(fd: c_int) -> Option<SocketAddr> {
    let bound = listening::local(fd).ok();
    bound.filter(|bound| bound.port() != 0 || !bound.ip().is_unspecified())
}

fn connect_again(
    fd: c_int,
    (number, handled): (Number, Handled),
    target: Option<SocketAddr>,
) -> Result<c_int, Errno> {
    let (found, waits, late) = stacks::on(number, |stack| {
        stack.turn(now());
        let waits = stack.sockets.options(number)?.waits;
        if !stack.sockets.is_idle(number) {
            let found = stack.sockets.connected(number)?;
            return Ok((found, waits, Errno::ALREADY));
        }
        let target = target.ok_or(Errno::FAMILY)?;
        own::during(|| stack.sockets.connect_anew(number, target, bound(fd)))?;
        if stack.sockets.is_deferred(number) {
            return Ok((Some(()), waits, Errno::ALREADY));
        }
        stack.turn(now());
        Ok((None, waits, Errno::IN_PROGRESS))
    })?;
    match found {
        Some(()) => Ok(0),
        None if waits => wait_for_handshake((number, handled), late),
        None => Err(late),
    }
}

/// Waits; `late` is what is said when the time is over.
pub(super) fn wait_for_handshake(
    (number, mut handled): (Number, Handled),
    late: Errno,
) -> Result<c_int, Errno> {
    let timeout = stacks::on(number, |stack| {
        Ok(stack.sockets.options(number)?.send_timeout)
    })?;
    loop {
        let connected = waiting::of_call(number, timeout, handled, |stack| {
            stack.sockets.connected(number).transpose()
        });
        if !waiting::is_restarted(&connected, &mut handled, timeout) {
            return connected?.unwrap_or(Err(late)).map(|()| 0);
        }
    }
}

/// # Safety
/// As shutdown(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let half = match how {
        libc::SHUT_RD => Some(Half::Reading),
        libc::SHUT_WR => Some(Half::Writing),
        libc::SHUT_RDWR => Some(Half::Both),
        _ => None,
    };
    match (descriptors::find(fd), half) {
        (Entry::Stream(number), Some(half)) => done(stacks::on(number, |stack| {
            stack.settle_loans();
            match half {
                Half::Writing if stack.shuts_later(number) => {}
                Half::Both if stack.shuts_later(number) => {
                    stack.sockets.shutdown(number, Half::Reading)?;
                }
                half => stack.sockets.shutdown(number, half)?,
            }
            stack.wake();
            if stack.sockets.options(number)?.waits {
                stack.sockets.flush();
            }
            Ok(0)
        })),
        (Entry::Stream(_), None) => done(Err(Errno::INVALID)),
        (Entry::Listener(number), Some(Half::Reading | Half::Both)) => {
            // SAFETY: the call takes no pointer.
            let result = unsafe { originals::shutdown(fd, how) };
            if result == 0 {
                // It listens no more, in any process.
                descriptors::set(fd, Entry::Kernel);
                stacks::with(number, |stack| stack.sockets.close(number));
            }
            result
        }
        (Entry::Lost, _) => done(Err(Errno::NOT_CONNECTED)),
        (_, half) => {
            // SAFETY: the call takes no pointer.
            let result = unsafe { originals::shutdown(fd, how) };
            if let Some(half) = half.filter(|_| result == -1) {
                early_shutdown::note(fd, half);
            }
            result
        }
    }
}

/// # Safety
/// As getsockname(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getsockname(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    if let Some(borrowed) = borrowing::find(descriptors::peek(fd)) {
        // SAFETY: the caller's promise.
        return done(
            borrowed
                .local
                .and_then(|address| unsafe { address::store(address, into, len) })
                .map(|()| 0),
        );
    }
    let Entry::Stream(number) = descriptors::find(fd) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::getsockname(fd, into, len) };
    };
    let local = stacks::on(number, |stack| stack.sockets.local(number));
    if local.is_ok_and(|local| local.ip().is_unspecified()) && bound(fd).is_some() {
        // Not connected any more, and bound where the kernel's socket is.
        // SAFETY: the caller's promise.
        return unsafe { originals::getsockname(fd, into, len) };
    }
    // SAFETY: the caller's promise.
    done(
        local
            .and_then(|local| unsafe { address::store(local, into, len) })
            .map(|()| 0),
    )
}

/// # Safety
/// As getpeername(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getpeername(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    if let Some(borrowed) = borrowing::find(descriptors::peek(fd)) {
        // SAFETY: the caller's promise.
        return done(
            borrowed
                .peer
                .and_then(|address| unsafe { address::store(address, into, len) })
                .map(|()| 0),
        );
    }
    let Entry::Stream(number) = descriptors::find(fd) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::getpeername(fd, into, len) };
    };
    let peer = stacks::on(number, |stack| stack.sockets.peer(number));
    // SAFETY: the caller's promise.
    done(
        peer.and_then(|peer| unsafe { address::store(peer, into, len) })
            .map(|()| 0),
    )
}
