//! DPDK in this process: its libraries are found at run time, and nothing of DPDK is needed to build this crate.
//!
//! What DPDK's headers would compile into a program (the calls of a driver, the fields of its packets) is done here, with the layouts
//! of `layout.rs`. They are part of DPDK's ABI, which has a number; only libraries of the number that was checked are loaded.
//!
//! A process has one environment (EAL) and keeps it until it ends: it must not fork afterwards. Threads that receive and send are
//! registered, so that DPDK gives them numbers and caches of their own.

/// Offsets and numbers of DPDK's headers.
pub mod layout;

/// Functions of the libraries.
pub mod library;

/// The environment (EAL) of the process.
pub mod environment;

/// A structure of DPDK's that is passed by address.
mod record;

/// What a driver says of its port.
pub mod port_info;

/// A port: configured, started, asked, closed.
pub mod port;

/// One receive and one transmit queue of a port.
pub mod queue_pair;

/// A frame in DPDK's memory.
pub mod packet;

/// Memory for packets.
mod pool;
