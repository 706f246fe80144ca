//! Making a listening socket.

use crate::address::SockAddr;
use crate::process::check;
use crate::socket::set_option;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Where to listen.
#[derive(Clone, Copy, Debug)]
pub enum Endpoint<'a> {
    Ip(SocketAddr),
    /// The path of a Unix socket.
    Unix(&'a [u8]),
}

/// Options that are set before `bind` and `listen`; `None` or false leaves the system's default.
#[derive(Clone, Copy, Debug)]
pub struct ListenerOptions {
    pub reuseport: bool,
    pub backlog: u32,
    /// `TCP_DEFER_ACCEPT`.
    pub deferred: bool,
    /// `TCP_FASTOPEN`, the length of its queue.
    pub fastopen: Option<u32>,
    pub receive_buffer_bytes: Option<usize>,
    pub send_buffer_bytes: Option<usize>,
    pub ipv6only: Option<bool>,
    /// Set on the listener and inherited by accepted connections.
    pub nodelay: bool,
    pub keepalive: Option<bool>,
    pub keepalive_idle_s: Option<u32>,
    pub keepalive_interval_s: Option<u32>,
    pub keepalive_count: Option<u32>,
}

/// The call that failed, with its error.
#[derive(Debug)]
pub struct ListenerError {
    /// `socket()`, `bind()`, `listen()` or `setsockopt(NAME)`.
    pub call: &'static str,
    pub error: io::Error,
}

/// Opens a listening socket, non-blocking and close-on-exec. Costs four to a dozen system calls.
pub fn listen(endpoint: Endpoint<'_>, options: &ListenerOptions) -> Result<OwnedFd, ListenerError> {
    let failed = |call| move |error| ListenerError { call, error };
    let address = SockAddr::new(endpoint).map_err(failed("bind()"))?;
    let socket = stream_socket(address.family()).map_err(failed("socket()"))?;
    set_options(socket.as_fd(), endpoint, options)?;
    address.bind(socket.as_fd()).map_err(failed("bind()"))?;
    listen_on(socket.as_fd(), options.backlog).map_err(failed("listen()"))?;
    set_listening_options(socket.as_fd(), endpoint, options)?;
    Ok(socket)
}

/// Sets the accept queue's length; also of a socket that listens already.
pub fn listen_on(socket: BorrowedFd<'_>, backlog: u32) -> io::Result<()> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // SAFETY: listen(2) takes no pointer; an unsuitable descriptor is an error it returns.
    check(unsafe { libc::listen(socket.as_raw_fd(), backlog) })
}

pub(crate) fn stream_socket(family: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes no pointer.
    let descriptor = unsafe { libc::socket(family, kind, 0) };
    check(descriptor)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Options that must be set before `bind`.
fn set_options(
    socket: BorrowedFd<'_>,
    endpoint: Endpoint<'_>,
    options: &ListenerOptions,
) -> Result<(), ListenerError> {
    let set = |call, level, name, value: i32| {
        set_int(socket, level, name, value).map_err(|error| ListenerError { call, error })
    };
    set(
        "setsockopt(SO_REUSEADDR)",
        libc::SOL_SOCKET,
        libc::SO_REUSEADDR,
        1,
    )?;
    if options.reuseport {
        set(
            "setsockopt(SO_REUSEPORT)",
            libc::SOL_SOCKET,
            libc::SO_REUSEPORT,
            1,
        )?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        set(
            "setsockopt(SO_RCVBUF)",
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            clamp(bytes),
        )?;
    }
    if let Some(bytes) = options.send_buffer_bytes {
        set(
            "setsockopt(SO_SNDBUF)",
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            clamp(bytes),
        )?;
    }
    if let (Endpoint::Ip(SocketAddr::V6(_)), Some(only)) = (endpoint, options.ipv6only) {
        set(
            "setsockopt(IPV6_V6ONLY)",
            libc::IPPROTO_IPV6,
            libc::IPV6_V6ONLY,
            i32::from(only),
        )?;
    }
    Ok(())
}

/// Options that accepted connections inherit, and those that only a listening socket has. Also used to change the
/// options of a socket that is taken over.
pub fn set_listening_options(
    socket: BorrowedFd<'_>,
    endpoint: Endpoint<'_>,
    options: &ListenerOptions,
) -> Result<(), ListenerError> {
    let Endpoint::Ip(_) = endpoint else {
        return Ok(());
    };
    let set = |call, level, name, value: i32| {
        set_int(socket, level, name, value).map_err(|error| ListenerError { call, error })
    };
    if options.nodelay {
        set(
            "setsockopt(TCP_NODELAY)",
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            1,
        )?;
    }
    if options.deferred {
        // nginx's value: data is awaited for one second, then the connection is accepted without.
        set(
            "setsockopt(TCP_DEFER_ACCEPT)",
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            1,
        )?;
    }
    if let Some(queue) = options.fastopen {
        let queue = i32::try_from(queue).unwrap_or(i32::MAX);
        set(
            "setsockopt(TCP_FASTOPEN)",
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN,
            queue,
        )?;
    }
    if let Some(on) = options.keepalive {
        set(
            "setsockopt(SO_KEEPALIVE)",
            libc::SOL_SOCKET,
            libc::SO_KEEPALIVE,
            i32::from(on),
        )?;
    }
    let probes = [
        (
            "setsockopt(TCP_KEEPIDLE)",
            libc::TCP_KEEPIDLE,
            options.keepalive_idle_s,
        ),
        (
            "setsockopt(TCP_KEEPINTVL)",
            libc::TCP_KEEPINTVL,
            options.keepalive_interval_s,
        ),
        (
            "setsockopt(TCP_KEEPCNT)",
            libc::TCP_KEEPCNT,
            options.keepalive_count,
        ),
    ];
    for (call, name, value) in probes {
        if let Some(value) = value {
            set(
                call,
                libc::IPPROTO_TCP,
                name,
                i32::try_from(value).unwrap_or(i32::MAX),
            )?;
        }
    }
    Ok(())
}

fn clamp(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Sets an option whose value is an int.
pub fn set_int(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(socket, level, name, &value)
}

/// Allows more sockets to be bound to the port of one that was bound without `reuseport`.
pub fn set_reuseport(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
}
