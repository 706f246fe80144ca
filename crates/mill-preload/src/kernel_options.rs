//! Options that a socket of the kernel has: a program sets them before its socket is the stack's.

use crate::originals;
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};
use mill_sockets::socket::Options;

/// Which limits of buffers were set by the program (`SO_BUF_LOCK`, Linux 5.14).
const SO_BUF_LOCK: c_int = 72;
const SEND_LOCKED: i32 = 1;
const RECEIVE_LOCKED: i32 = 2;

/// Where `struct tcp_info` of a listener has its backlog (`tcpi_sacked`).
const BACKLOG_AT: usize = 28;

/// The name of a socket, which it has in all processes (`SO_COOKIE`).
pub(crate) fn cookie(descriptor: c_int) -> Option<u64> {
    let bytes = value(descriptor, SOL_SOCKET, libc::SO_COOKIE);
    Some(u64::from_ne_bytes(*bytes.first_chunk()?))
}

/// Whether a descriptor is a socket of IP.
pub(crate) fn is_of_ip(descriptor: c_int) -> bool {
    let domain = number(descriptor, SOL_SOCKET, libc::SO_DOMAIN);
    matches!(domain, Some(libc::AF_INET | libc::AF_INET6))
}

/// The options of a socket that connects. Only those are asked for that the program has set of any socket: a connection would cost
/// a dozen calls otherwise.
pub(crate) fn of_stream(descriptor: c_int) -> Options {
    options(descriptor, is_set)
}

fn options(descriptor: c_int, is_wanted: impl Fn(usize) -> bool) -> Options {
    let mut options = Options {
        waits: waits(descriptor),
        is_ipv6: number(descriptor, SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_INET6),
        ..Options::default()
    };
    let wanted = KNOWN.iter().enumerate();
    for (_, (level, name)) in wanted.filter(|(place, _)| is_wanted(*place)) {
        match (*level, *name) {
            (SOL_SOCKET, libc::SO_SNDBUF) => {
                copy_buffer(descriptor, *name, SEND_LOCKED, &mut options)
            }
            (SOL_SOCKET, libc::SO_RCVBUF) => {
                copy_buffer(descriptor, *name, RECEIVE_LOCKED, &mut options);
            }
            (IPPROTO_TCP, libc::TCP_MAXSEG) => copy_segment(descriptor, &mut options),
            (level, name) => copy(descriptor, level, name, &mut options),
        }
    }
    options
}

/// Copies the limit of segments. Of a socket that has none the kernel tells what it takes a peer for that says nothing
/// (RFC 9293 3.7.1), so that a program can't choose just that.
fn copy_segment(descriptor: c_int, options: &mut Options) {
    let found = number(descriptor, IPPROTO_TCP, libc::TCP_MAXSEG);
    if let Some(bytes) = found.filter(|bytes| *bytes != MSS_DEFAULT) {
        let _ = options.set(IPPROTO_TCP, libc::TCP_MAXSEG, &bytes.to_ne_bytes());
    }
}

/// Bytes (`TCP_MSS_DEFAULT`).
const MSS_DEFAULT: c_int = 536;

/// Copies a limit that the program has set, of which the kernel tells twice as much.
fn copy_buffer(descriptor: c_int, name: c_int, lock: i32, options: &mut Options) {
    let locked = number(descriptor, SOL_SOCKET, SO_BUF_LOCK).unwrap_or(0);
    if locked & lock != 0 {
        let bytes = number(descriptor, SOL_SOCKET, name).unwrap_or(0);
        let _ = options.set(SOL_SOCKET, name, &(bytes / 2).to_ne_bytes());
    }
}

/// The options of a listener, and of the connections that it accepts.
pub(crate) fn of_listener(descriptor: c_int) -> Options {
    // It may come from another process, which has set its options. Rare ones have the kernel's values else, not the stack's.
    let is_asked = |place| !RARE.contains(&place) || is_set(place);
    let mut options = options(descriptor, is_asked);
    for (level, name) in [
        (SOL_SOCKET, libc::SO_REUSEPORT),
        (IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
        (IPPROTO_TCP, libc::TCP_FASTOPEN),
    ] {
        copy(descriptor, level, name, &mut options);
    }
    let is_v6_only = number(descriptor, IPPROTO_IPV6, libc::IPV6_V6ONLY) == Some(1);
    options.listen.dual_stack = options.is_ipv6 && !is_v6_only;
    let info = value(descriptor, IPPROTO_TCP, libc::TCP_INFO);
    let backlog = info.get(BACKLOG_AT..).and_then(<[u8]>::first_chunk);
    if let Some(backlog) = backlog {
        options.listen.backlog = u32::from_ne_bytes(*backlog);
    }
    options
}

/// The options that a connection takes over, nearly all of which are the same number there and here.
const KNOWN: &[(c_int, c_int)] = &[
    (SOL_SOCKET, libc::SO_LINGER),
    (SOL_SOCKET, libc::SO_RCVTIMEO),
    (SOL_SOCKET, libc::SO_SNDTIMEO),
    (SOL_SOCKET, libc::SO_RCVLOWAT),
    (IPPROTO_TCP, libc::TCP_NODELAY),
    (IPPROTO_TCP, libc::TCP_CORK),
    (IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (SOL_SOCKET, libc::SO_REUSEADDR),
    (SOL_SOCKET, libc::SO_REUSEPORT),
    (SOL_SOCKET, libc::SO_OOBINLINE),
    (SOL_SOCKET, libc::SO_BROADCAST),
    (SOL_SOCKET, libc::SO_DONTROUTE),
    (IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (IPPROTO_TCP, libc::TCP_KEEPCNT),
    (IPPROTO_TCP, libc::TCP_SYNCNT),
    (IPPROTO_TCP, libc::TCP_LINGER2),
    (IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS),
    (IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (IPPROTO_TCP, libc::TCP_CONGESTION),
    (IPPROTO_TCP, libc::TCP_MAXSEG),
    (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
    (SOL_SOCKET, libc::SO_KEEPALIVE),
    (SOL_SOCKET, libc::SO_SNDBUF),
    (SOL_SOCKET, libc::SO_RCVBUF),
    (IPPROTO_IP, libc::IP_TOS),
    (IPPROTO_IPV6, libc::IPV6_TCLASS),
];

/// Places of those that few programs set.
const RARE: Range<usize> = 7..22;

/// Which of them the program has set of any socket: a bit for each place.
static SET: AtomicU64 = AtomicU64::new(0);

fn is_set(place: usize) -> bool {
    SET.load(Ordering::Relaxed) & (1_u64 << place) != 0
}

/// The program has set this option of a socket of the kernel.
pub(crate) fn on_set(level: c_int, name: c_int) {
    let known = match (level, name) {
        (SOL_SOCKET, libc::SO_SNDBUFFORCE) => (SOL_SOCKET, libc::SO_SNDBUF),
        (SOL_SOCKET, libc::SO_RCVBUFFORCE) => (SOL_SOCKET, libc::SO_RCVBUF),
        other => other,
    };
    if let Some(place) = KNOWN.iter().position(|other| *other == known) {
        SET.fetch_or(1 << place, Ordering::Relaxed);
    }
}

fn copy(descriptor: c_int, level: c_int, name: c_int, options: &mut Options) {
    let value = value(descriptor, level, name);
    if value.iter().any(|byte| *byte != 0) {
        // A value that the kernel has taken is in range.
        let _ = options.set(level, name, &value);
    }
}

pub(crate) fn is_tcp(descriptor: c_int) -> bool {
    number(descriptor, SOL_SOCKET, libc::SO_PROTOCOL) == Some(IPPROTO_TCP)
}

fn waits(descriptor: c_int) -> bool {
    // SAFETY: the command takes no argument.
    let flags = unsafe { originals::fcntl(descriptor, libc::F_GETFL, 0) };
    flags & libc::O_NONBLOCK == 0
}

/// A number among the options.
pub(crate) fn number(descriptor: c_int, level: c_int, name: c_int) -> Option<i32> {
    let mut value = 0_i32;
    let mut len = libc::socklen_t::try_from(size_of::<i32>()).ok()?;
    // SAFETY: the pointers are to locals, of the stated size.
    let result = unsafe {
        originals::getsockopt(
            descriptor,
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(value)
}

fn value(descriptor: c_int, level: c_int, name: c_int) -> Vec<u8> {
    let mut bytes = [0_u8; 256];
    let mut len = 256;
    // SAFETY: the pointers are to locals, of the stated size.
    let result = unsafe {
        originals::getsockopt(
            descriptor,
            level,
            name,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let len = if result == 0 { len as usize } else { 0 };
    bytes.get(..len).unwrap_or_default().to_vec()
}
