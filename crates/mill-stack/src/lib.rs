//! One core's host: frames in, frames out, many connections; a synchronous socket interface.
//!
//! Follow a frame:
//!
//! ```text
//! link         a burst of frames from the device, with what it knows of their checksums
//! receive      Ethernet, IP, which flow; ARP, ICMP and fragments leave here
//!   flow_table   the connection, else time_wait, listener (syn_cache, syn_cookie), RST
//!   mill-tcp     segment_arrives
//! socket       what the application sees: accept, connect, read, write, readiness
//! transmit     connections that have something to send, one after the other, into the device's frames
//! ```
//!
//! The order of calls in a turn: `receive` until the link has no more, `expire`; then the application reads and
//! writes; then `transmit`, and `settle`, which gives all frames back to the link.
//!
//! Invariants:
//! - No clock, no randomness, no I/O, no thread: the host is a `Send` value (asserted).
//! - Every frame that is dropped is counted by reason ([`drop_reason::DropReason`]).
//! - Whatever peers do, memory stays within [`limits::Limits`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// What carries frames, seen from above.
pub mod link;

/// Why a frame was dropped.
pub mod drop_reason;

/// How much of everything there may be.
pub mod limits;

/// When a host's owner looks for frames.
pub mod polling;

/// What a host is made with.
pub mod config;

/// Bytes to send, as the host needs them.
pub mod queue;

/// What an application holds: identifiers, options, readiness, errors.
pub mod socket;

/// Whose Ethernet address an IP address has.
pub mod neighbor;

/// Where packets go first, and which of our addresses they come from.
pub mod route;

/// How large packets to a target may be.
pub mod path_mtu;

/// Servers that take text in a SYN.
mod fast_open_peers;

/// Fragments become datagrams again.
pub mod fragment;

/// IP packets that are no connection's.
pub mod outbox;

/// Echo, and errors.
pub mod icmp;

/// Datagrams for applications.
pub mod udp;

/// A keyed hash.
pub mod siphash;

/// Which connection: two addresses and two ports.
pub mod flow;

/// From a flow to what stands for it.
pub mod flow_table;

/// What stands for each flow, whatever its kind.
mod flows;

/// When to look at which connection again.
pub mod timer;

/// What a host keeps for each connection, and where.
mod slot;

/// Bytes that have arrived in order and wait for their reader.
mod unread;

/// What a host lends to its connections for each call.
mod tcp_context;

/// Who takes a SYN, and what waits to be accepted.
mod listener;

/// Handshakes that wait for their last acknowledgement …
mod syn_cache;

/// … and those for which there is no room.
pub mod syn_cookie;

/// Connections in TIME-WAIT.
mod time_wait_table;

/// Ports for active opens.
mod port;

/// Numbers that nobody may foretell.
mod secrets;

/// So many in a second, and no more.
mod rate_limit;

/// Connections that ended by a reset of ours a moment ago.
mod recent_resets;

/// Segments that belong to no connection's sending.
mod reply_queue;

/// What a host counts besides TCP.
pub mod counters;

/// A frame arrives.
mod receive;

/// What goes out.
mod transmit;

/// Two links joined back to back in memory, for tests and benchmarks.
pub mod memory_link;

/// The host.
pub mod host;
