//! Engines over the operating system: kernel sockets with epoll, the file system, and both beside a stack of our own.
//!
//! On kernel sockets this crate is the whole way between the network and the server: what later are device,
//! stack and TCP is here one slot per connection and one system call per act.
//!
//! Invariants:
//! - Everything goes through mill-sys; no unsafe, no libc here.
//! - A connection that idles holds its slot and nothing else: no buffer, no queue.
//! - Per turn nothing is allocated once the slabs and pools have grown to the load.
#![forbid(unsafe_code)]

/// The engine on kernel sockets: the epoll set, the slab of connections, the turn's two shared buffers.
pub mod kernel;

/// Wall-clock time.
mod wall_clock;

/// Files through the kernel, with helper threads for what waits for a disk.
pub mod files;

/// Kernel sockets beside a stack of our own, as the programs run them.
pub mod combined;

/// Listening sockets that another thread or process made for this engine.
pub mod offer;

pub use combined::{Bypass, CombinedEngine};
pub use files::{KernelFile, KernelFiles, PoolLimits};
pub use kernel::{KernelDatagrams, KernelEngine, KernelOptions, KernelStream};
