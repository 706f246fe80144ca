//! The table of functions that packetdrill has filled in, and the C types of Linux in it.

use core::ffi::{c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

/// The order is packetdrill's. Every function gets `userdata` first.
#[repr(C)]
#[derive(Debug)]
pub struct Interface {
    pub userdata: *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub socket: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_uint) -> c_int,
    pub listen: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut c_uint) -> c_int,
    pub connect: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_uint) -> c_int,
    pub read: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize) -> isize,
    pub readv: unsafe extern "C" fn(*mut c_void, c_int, *const IoVec, c_int) -> isize,
    pub recv: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize, c_int) -> isize,
    pub recvfrom: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut c_void,
        *mut c_uint,
    ) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut c_void, c_int, *mut MsgHdr, c_int) -> isize,
    pub write: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> isize,
    pub writev: unsafe extern "C" fn(*mut c_void, c_int, *const IoVec, c_int) -> isize,
    pub send: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int) -> isize,
    pub sendto: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_void,
        usize,
        c_int,
        *const c_void,
        c_uint,
    ) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut c_void, c_int, *const MsgHdr, c_int) -> isize,
    /// Variadic in C; an integer behind the fixed arguments is passed where a fixed one would be, on x86-64 and AArch64.
    pub fcntl: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_long) -> c_int,
    /// Variadic in C, as `fcntl`.
    pub ioctl: unsafe extern "C" fn(*mut c_void, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    pub getsockopt:
        unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut c_uint) -> c_int,
    pub setsockopt:
        unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *const c_void, c_uint) -> c_int,
    pub poll: unsafe extern "C" fn(*mut c_void, *mut PollFd, c_ulong, c_int) -> c_int,
    /// An IP packet for the stack.
    pub netdev_send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    /// The next IP packet of the stack, and when it left, in microseconds.
    pub netdev_receive:
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    pub usleep: unsafe extern "C" fn(*mut c_void, c_uint) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(*mut c_void, *mut TimeVal, *mut c_void) -> c_int,
    pub epoll_create: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, c_int, c_int) -> c_int,
    pub pipe: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub splice: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_longlong,
        c_int,
        *mut c_longlong,
        usize,
        c_uint,
    ) -> c_int,
}

/// What the library's one symbol is.
pub type Init = unsafe extern "C" fn(*const c_char, *mut Interface);

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    pub base: *mut c_void,
    pub len: usize,
}

/// `struct msghdr`.
#[repr(C)]
#[derive(Debug)]
pub struct MsgHdr {
    pub name: *mut c_void,
    pub name_len: c_uint,
    pub iov: *mut IoVec,
    pub iov_len: usize,
    pub control: *mut c_void,
    pub control_len: usize,
    pub flags: c_int,
}

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub revents: i16,
}

/// `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeVal {
    pub sec: i64,
    pub usec: i64,
}

/// 33 pointers: `userdata` and the functions.
const _: () = assert!(size_of::<Interface>() == 33 * size_of::<usize>());
