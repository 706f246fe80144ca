//! syscall(2): programs that call the kernel by number through the C library, as Node.js closes descriptors, mean the same
//! functions.

use super::{
    binding, connections, events, forking, numbers, options, polling, reading, watching, writing,
};
use crate::memory::done;
use crate::{originals, stacks};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::with_exposed_provenance_mut as pointer;
use libc::{iovec, sigset_t, sockaddr, socklen_t};
use mill_sockets::errno::Errno;

/// The arguments are those of the call; the C library takes six of them from the same places, whether they were given or not.
///
/// # Safety
/// As the call of this number.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if number == libc::SYS_io_uring_setup && stacks::is_offered() {
        // The kernel would do what a ring is asked for with what stands for connections there. Programs have another way for kernels
        // without rings, as libuv has.
        return done(Err(Errno::NO_CALL)).into();
    }
    // SAFETY: the caller's promise.
    let ours = unsafe { on_descriptors(number, [a, b, c, d, e, f]) };
    // SAFETY: as above.
    let ours = ours.or_else(|| unsafe { on_sockets(number, [a, b, c, d, e, f]) });
    // SAFETY: as above.
    let ours = ours.or_else(|| unsafe { that_wait(number, [a, b, c, d, e]) });
    // SAFETY: as above.
    let ours = ours.or_else(|| unsafe { forking::by_number(number, [a, b, c, d, e, f]) });
    // SAFETY: as above.
    ours.unwrap_or_else(|| unsafe { originals::syscall(number, a, b, c, d, e, f) })
}

/// Reading, writing, and what numbers descriptors have.
///
/// # Safety
/// As the call of this number.
unsafe fn on_descriptors(number: c_long, [a, b, c, d, ..]: [usize; 6]) -> Option<c_long> {
    let fd = int(a);
    let result = match number {
        // SAFETY: the caller's promise.
        libc::SYS_close => unsafe { numbers::close(fd) }.into(),
        // SAFETY: as above.
        libc::SYS_read => long(unsafe { reading::read(fd, pointer(b), c) }),
        // SAFETY: as above.
        libc::SYS_write => long(unsafe { writing::write(fd, pointer::<c_void>(b), c) }),
        // SAFETY: as above.
        libc::SYS_readv => long(unsafe { reading::readv(fd, pointer::<iovec>(b), int(c)) }),
        // SAFETY: as above.
        libc::SYS_writev => long(unsafe { writing::writev(fd, pointer::<iovec>(b), int(c)) }),
        // SAFETY: as above.
        libc::SYS_sendfile => long(unsafe { writing::sendfile(fd, int(b), pointer(c), d) }),
        // SAFETY: as above.
        libc::SYS_close_range => unsafe { numbers::close_range(uint(a), uint(b), int(c)) }.into(),
        // SAFETY: as above.
        libc::SYS_dup => unsafe { numbers::dup(fd) }.into(),
        // SAFETY: as above.
        libc::SYS_dup2 => unsafe { numbers::dup2(fd, int(b)) }.into(),
        // SAFETY: as above.
        libc::SYS_dup3 => unsafe { numbers::dup3(fd, int(b), int(c)) }.into(),
        // SAFETY: as above.
        libc::SYS_fcntl => unsafe { numbers::fcntl(fd, int(b), c) }.into(),
        // SAFETY: as above.
        libc::SYS_ioctl => unsafe { numbers::ioctl(fd, b as u64, c) }.into(),
        _ => return None,
    };
    Some(result)
}

/// What only sockets have.
///
/// # Safety
/// As the call of this number.
unsafe fn on_sockets(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    let fd = int(a);
    let result = match number {
        // SAFETY: the caller's promise.
        libc::SYS_accept => unsafe { connections::accept(fd, pointer(b), pointer(c)) }.into(),
        libc::SYS_accept4 => {
            // SAFETY: as above.
            unsafe { connections::accept4(fd, pointer(b), pointer(c), int(d)) }.into()
        }
        libc::SYS_connect => {
            // SAFETY: as above.
            unsafe { connections::connect(fd, pointer::<sockaddr>(b), uint(c)) }.into()
        }
        // SAFETY: as above.
        libc::SYS_bind => unsafe { binding::bind(fd, pointer::<sockaddr>(b), uint(c)) }.into(),
        // SAFETY: as above.
        libc::SYS_listen => unsafe { binding::listen(fd, int(b)) }.into(),
        // SAFETY: as above.
        libc::SYS_shutdown => unsafe { connections::shutdown(fd, int(b)) }.into(),
        libc::SYS_getsockname => {
            // SAFETY: as above.
            unsafe { connections::getsockname(fd, pointer(b), pointer(c)) }.into()
        }
        libc::SYS_getpeername => {
            // SAFETY: as above.
            unsafe { connections::getpeername(fd, pointer(b), pointer(c)) }.into()
        }
        libc::SYS_getsockopt => {
            // SAFETY: as above.
            unsafe { options::getsockopt(fd, int(b), int(c), pointer(d), pointer(e)) }.into()
        }
        libc::SYS_setsockopt => {
            let value = pointer::<c_void>(d);
            // SAFETY: as above.
            unsafe { options::setsockopt(fd, int(b), int(c), value, uint(e)) }.into()
        }
        libc::SYS_recvfrom => {
            let (from, from_len) = (pointer::<sockaddr>(e), pointer::<socklen_t>(f));
            // SAFETY: as above.
            long(unsafe { reading::recvfrom(fd, pointer(b), c, int(d), from, from_len) })
        }
        libc::SYS_sendto => {
            let (bytes, to) = (pointer::<c_void>(b), pointer::<sockaddr>(e));
            // SAFETY: as above.
            long(unsafe { writing::sendto(fd, bytes, c, int(d), to, uint(f)) })
        }
        // SAFETY: as above.
        libc::SYS_recvmsg => long(unsafe { reading::recvmsg(fd, pointer(b), int(c)) }),
        // SAFETY: as above.
        libc::SYS_sendmsg => long(unsafe { writing::sendmsg(fd, pointer(b), int(c)) }),
        libc::SYS_recvmmsg => {
            // SAFETY: as above.
            unsafe { reading::recvmmsg(fd, pointer(b), uint(c), int(d), pointer(e)) }.into()
        }
        libc::SYS_sendmmsg => {
            // SAFETY: as above.
            unsafe { writing::sendmmsg(fd, pointer(b), uint(c), int(d)) }.into()
        }
        _ => return None,
    };
    Some(result)
}

/// poll(2), select(2) and epoll(7), those with a set of signals only if it is none: the kernel's sets are shorter than C's.
///
/// # Safety
/// As the call of this number.
unsafe fn that_wait(number: c_long, [a, b, c, d, e]: [usize; 5]) -> Option<c_long> {
    let none = core::ptr::null::<sigset_t>();
    let result = match number {
        // SAFETY: the caller's promise.
        libc::SYS_poll => unsafe { polling::poll(pointer(a), b as u64, int(c)) }.into(),
        libc::SYS_ppoll if d == 0 => {
            // SAFETY: as above.
            unsafe { polling::ppoll(pointer(a), b as u64, pointer(c), none) }.into()
        }
        libc::SYS_epoll_ctl => {
            // SAFETY: as above.
            unsafe { watching::epoll_ctl(int(a), int(b), int(c), pointer(d)) }.into()
        }
        libc::SYS_epoll_wait => {
            // SAFETY: as above.
            unsafe { events::epoll_wait(int(a), pointer(b), int(c), int(d)) }.into()
        }
        libc::SYS_epoll_pwait if e == 0 => {
            // SAFETY: as above.
            unsafe { events::epoll_wait(int(a), pointer(b), int(c), int(d)) }.into()
        }
        libc::SYS_epoll_pwait2 if e == 0 => {
            // SAFETY: as above.
            unsafe { events::epoll_pwait2(int(a), pointer(b), int(c), pointer(d), none) }.into()
        }
        _ => return None,
    };
    Some(result)
}

/// The kernel looks at the lower half of an argument that is an `int`.
#[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
const fn uint(argument: usize) -> c_uint {
    argument as c_uint
}

const fn int(argument: usize) -> c_int {
    uint(argument).cast_signed()
}

const fn long(result: isize) -> c_long {
    result as c_long
}
