//! Engines over the operating system: kernel sockets with epoll, the file system, and both beside the stack.
//!
//! On kernel sockets this crate is all there is between the network and the server: one slot for each connection, and
//! one system call for each operation.
//!
//! Invariants:
//! - Everything goes through mill-sys; no unsafe, no libc here.
//! - An idle connection holds its slot and nothing else: no buffer, no queue.
//! - Nothing is allocated in a turn once the slabs and pools have grown to the load.
#![forbid(unsafe_code)]

/// The engine on kernel sockets: the epoll set, the slab of connections, the turn's two shared buffers.
pub mod kernel;

/// Wall-clock time.
mod wall_clock;

/// Files through the kernel, with helper threads for what waits for a disk.
pub mod files;

/// Kernel sockets and the stack in one engine, as the programs use them.
pub mod combined;

/// Listening sockets that another thread or process made for this engine.
pub mod offer;

pub use combined::{Bypass, CombinedEngine};
pub use files::{KernelFile, KernelFiles};
pub use kernel::{KernelDatagrams, KernelEngine, KernelOptions, KernelStream};
