//! Options that connections of the stack can't have: counted, and each said once on standard error.

use crate::kernel_options;
use crate::lock::Lock;
use crate::say::say;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};
use mill_sockets::errno::Errno;
use std::borrow::Cow;

/// How often a program has set one.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Those that were said, not more than [`SAID_MAX`].
static SAID: Lock<Vec<(c_int, c_int)>> = Lock::new(Vec::new());

pub(crate) fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// setsockopt(2) of a connection of the stack fails, but for options that are of no consequence there.
pub(crate) fn of_stream(level: c_int, name: c_int) -> Result<c_int, Errno> {
    if WITHOUT_CONSEQUENCE.contains(&(level, name)) {
        return Ok(0);
    }
    note(level, name, "setsockopt() fails with ENOPROTOOPT");
    Err(Errno::NO_OPTION)
}

/// What is told of packets, of which TCP tells nothing, and a priority of queueing disciplines, through which the stack's frames don't pass.
const WITHOUT_CONSEQUENCE: &[(c_int, c_int)] = &[
    (SOL_SOCKET, libc::SO_PRIORITY),
    (IPPROTO_IP, libc::IP_PKTINFO),
    (IPPROTO_IP, libc::IP_RECVTTL),
    (IPPROTO_IP, libc::IP_RECVTOS),
    (IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    (IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
    (IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
];

/// The kernel's listener has it, and the stack's connections don't.
pub(crate) fn of_listener(level: c_int, name: c_int) {
    if is_of_connections(level, name) {
        note(level, name, NOT_THEIRS);
    }
}

/// A socket of the kernel, which may become the stack's, has it now.
pub(crate) fn before(descriptor: c_int, level: c_int, name: c_int) {
    if is_of_connections(level, name) && kernel_options::is_tcp(descriptor) {
        note(level, name, NOT_THEIRS);
    }
}

const NOT_THEIRS: &str = "it has no effect on them";

fn note(level: c_int, name: c_int, consequence: &str) {
    COUNT.fetch_add(1, Ordering::Relaxed);
    let Some(mut said) = SAID.try_lock() else {
        return;
    };
    if said.len() < SAID_MAX && !said.contains(&(level, name)) {
        said.push((level, name));
        drop(said);
        let what = word(level, name);
        say(&format!(
            "connections of the stack don't have the option {what}: {consequence}"
        ));
    }
}

fn is_of_connections(level: c_int, name: c_int) -> bool {
    NAMES
        .iter()
        .any(|(other, number, _)| (*other, *number) == (level, name))
}

fn word(level: c_int, name: c_int) -> Cow<'static, str> {
    let found = NAMES
        .iter()
        .find(|(other, number, _)| (*other, *number) == (level, name));
    match found {
        Some((_, _, word)) => Cow::Borrowed(word),
        None => Cow::Owned(format!("{name} of level {level}")),
    }
}

/// Options that change what a connection sends or how fast, and programs set before they listen or connect. Others are of no
/// consequence there, or are the stack's too.
const NAMES: &[(c_int, c_int, &str)] = &[
    (IPPROTO_IP, libc::IP_TTL, "IP_TTL"),
    (IPPROTO_IP, libc::IP_OPTIONS, "IP_OPTIONS"),
    (IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER"),
    (IPPROTO_IP, libc::IP_TRANSPARENT, "IP_TRANSPARENT"),
    (IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, "IPV6_UNICAST_HOPS"),
    (IPPROTO_IPV6, libc::IPV6_TRANSPARENT, "IPV6_TRANSPARENT"),
    (SOL_SOCKET, libc::SO_MARK, "SO_MARK"),
    (SOL_SOCKET, libc::SO_PRIORITY, "SO_PRIORITY"),
    (SOL_SOCKET, libc::SO_BINDTODEVICE, "SO_BINDTODEVICE"),
    (SOL_SOCKET, libc::SO_ATTACH_FILTER, "SO_ATTACH_FILTER"),
    (SOL_SOCKET, libc::SO_ATTACH_BPF, "SO_ATTACH_BPF"),
    (
        SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        "SO_ATTACH_REUSEPORT_CBPF",
    ),
    (
        SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_EBPF,
        "SO_ATTACH_REUSEPORT_EBPF",
    ),
    (SOL_SOCKET, libc::SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE"),
    (SOL_SOCKET, libc::SO_TXTIME, "SO_TXTIME"),
    (SOL_SOCKET, libc::SO_ZEROCOPY, "SO_ZEROCOPY"),
    (SOL_SOCKET, libc::SO_TIMESTAMPING, "SO_TIMESTAMPING"),
    (IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP"),
    (IPPROTO_TCP, libc::TCP_MD5SIG, "TCP_MD5SIG"),
    (IPPROTO_TCP, libc::TCP_REPAIR, "TCP_REPAIR"),
    (IPPROTO_TCP, libc::TCP_ULP, "TCP_ULP"),
    (IPPROTO_TCP, libc::TCP_SAVE_SYN, "TCP_SAVE_SYN"),
];

/// A program that tries all numbers is not told of all.
const SAID_MAX: usize = 64;
