//! POSIX sockets as values over mill-stack's host: streams, listeners, readiness and epoll sets, with Linux's results.
//!
//! Place in the walk: above one [`mill_stack::host::Host`] and its link; below mill-preload, which puts them behind the C
//! library's functions. A call:
//!
//! ```text
//! sockets.rs             the table: a number leads to a socket, which is a stream or a listener of the host
//! sockets/turn.rs        frames in, timers, frames out; what changed is queued in the epoll sets that watch it
//! sockets/transfer.rs    read and write; sockets/opening.rs listen, accept, connect; sockets/closing.rs
//! sockets/readiness.rs   what poll(2) says of a socket
//! sockets/watching.rs    epoll_ctl(2) and epoll_wait(2), over epoll_set.rs
//! sockets/options.rs     setsockopt(2) and getsockopt(2)
//! ```
//!
//! Nothing waits here: a call that would block gives `None`, and its caller turns the stack, or sleeps, and tries again.
//!
//! Invariants:
//! - No process, no libc, no clock, no thread: [`sockets::Sockets`] is a `Send` value over any link.
//! - What a peer does never panics here, and memory stays within the host's limits and the programs' descriptors.
#![forbid(unsafe_code)]

/// Numbers of errors, as Linux has them.
pub mod errno;

/// What poll(2) and epoll(7) tell of a socket.
pub mod readiness;

/// `struct tcp_info`.
pub mod tcp_info;

/// Values with numbers that are used again, and these numbers.
pub mod slab;

/// Options that are taken without effect.
pub mod noted;

/// One socket.
pub mod socket;

/// An epoll set: what is watched, and what of it may be ready.
pub mod epoll_set;

/// All sockets of a stack.
pub mod sockets;
