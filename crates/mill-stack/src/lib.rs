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

/// Limits of all tables and queues.
pub mod limits;

/// When a host polls its link.
pub mod polling;

/// The settings that a host is created with.
pub mod config;

/// Bytes to send, as the host needs them.
pub mod queue;

/// What an application holds: identifiers, options, readiness, errors.
pub mod socket;

/// From IP address to Ethernet address: ARP and neighbour discovery.
pub mod neighbor;

/// Routes and source addresses.
pub mod route;

/// The path MTU of targets.
pub mod path_mtu;

/// Servers that take data in a SYN.
mod fast_open_peers;

/// Fragments become datagrams again.
pub mod fragment;

/// IP packets that belong to no connection.
pub mod outbox;

/// Echo, and errors.
pub mod icmp;

/// UDP sockets.
pub mod udp;

/// A keyed hash.
pub mod siphash;

/// Which connection: two addresses and two ports.
pub mod flow;

/// From a flow to its entry.
pub mod flow_table;

/// The state of each flow, of any kind.
mod flows;

/// The timer wheel of connections.
pub mod timer;

/// The state that a host keeps for each connection.
mod slot;

/// Bytes that have arrived in order and wait for their reader.
mod unread;

/// The host's shared state that each call of a connection uses.
mod tcp_context;

/// Listeners: which one takes a SYN, and the connections that wait to be accepted.
mod listener;

/// Several processes that share a device: which one takes a new connection …
pub mod process_group;

/// … and which one has a flow.
pub mod flow_directory;

/// SYNs that came before their listener.
mod unclaimed;

/// Handshakes that wait for their last acknowledgement …
mod syn_cache;

/// … and those for which the cache has no room.
pub mod syn_cookie;

/// Connections in TIME-WAIT.
mod time_wait_table;

/// Ports for active opens.
mod port;

/// Numbers that peers must not be able to predict.
mod secrets;

/// A limit per second.
mod rate_limit;

/// Flows whose connections left this host a moment ago.
mod recent_flows;

/// Segments sent outside of a connection's stream.
mod reply_queue;

/// The host's counters besides TCP's.
pub mod counters;

/// A frame arrives.
mod receive;

/// Transmitting: replies first, then connections in turn.
mod transmit;

/// Two links joined back to back in memory, for tests and benchmarks.
pub mod memory_link;

/// The host.
pub mod host;
