//! One TCP connection as a value: segments and time in; segments, timers and events out.
//!
//! Read this first: RFC 9293 3.3 (variables), 3.10.7 (segment arrives). Then follow a segment:
//!
//! ```text
//! segment_arrives   3.10.7: which state, is it acceptable, RST, SYN     -> short path for what is in order
//!   ack             what it acknowledges: sack, rack, rto, congestion
//!   receive         what it carries: in order to the reader, else reassembly
//! next_segment      what to send now: handshake, data (send), acknowledgement (acknowledge)
//! on_timer          retransmission, delayed acknowledgement, keep-alive, ends
//! ```
//!
//! A [`connection::Connection`] is made of values that keep their own invariants: `SendSpace` (snd.una(), snd.nxt(), …),
//! `ReceiveSpace`, `RttEstimator` and `RetransmissionTimer` (rto.rs), `CongestionWindow`; and while something is in flight
//! `Scoreboard` and `Recovery`, while something is out of order `Reassembly`.
//!
//! The order of calls: `on_segment` and `on_timer` as things happen; commands (`shutdown`, `consumed`, …) as the
//! application wants; afterwards `next_segment` until it gives `None`, and `next_timer` for when to come back.
//! The bytes to send never come here: the owner keeps them in a queue whose first byte is the first
//! unacknowledged one, says how many there are, and gets ranges of it back in [`segment::SegmentOut`].
//!
//! Invariants:
//! - No IP, no ports, no clock, no randomness but the generator that is given; nothing here blocks or panics on
//!   what a peer sends.
//! - The connection is 128 bytes. [`connection::Cold`] exists only while data is in flight or out of order, and
//!   comes from a pool.
//! - The right edge of the receive window never moves left (RFC 9293 3.8.6); but by less than one unit of its scale
//!   (RFC 7323 2.4) when a peer sends byte by byte to a reader that has slept for a window and an eighth.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// Monotonic time, and the 32-bit ticks that timers are kept in.
pub mod time;

/// What can be set, with defaults as Linux has them.
pub mod config;

/// What the caller lends to every call: time, configuration, counters, randomness, pool.
pub mod env;

/// Numbers that look random to others; seeded.
pub mod random;

/// What is counted.
pub mod counters;

/// A segment that arrived, and one to send.
pub mod segment;

/// The states of RFC 9293 3.3.2.
pub mod state;

/// The connection: its variables, getters and commands.
pub mod connection;

/// What a segment or a timer meant to the owner of the connection.
pub mod arrived;

/// RFC 9293 3.10.7: a segment arrives.
pub mod segment_arrives;

/// Whether a segment is acceptable.
mod acceptability;

/// What the two SYNs of a connection agree on.
mod handshake;

/// The scales of both windows.
mod window_shifts;

/// The active side of a handshake.
mod syn_sent;

/// The passive side of a handshake, before there is a connection.
pub mod listen;

/// A connection that has received only, on its way to another host.
pub mod migration;

/// Fast Open, the server's side.
mod fast_open;

/// Fast Open, the client's side.
mod fast_open_client;

/// RST: when it is believed, and when it is sent.
mod reset;

/// Answers to segments that may be forged, and their limits.
mod challenge;

/// Timestamps, and protection against wrapped sequence numbers.
pub mod timestamps;

/// Explicit congestion notification.
pub mod ecn;

/// What the segment acknowledges.
mod ack;

/// Selective acknowledgements that arrive.
mod sack;

/// RTO: round-trip times, the retransmission timeout and its timer.
mod rto;

/// What the segment carries.
mod receive;

/// Bytes that arrived before those in front of them.
pub mod reassembly;

/// What was sent and is not acknowledged, segment by segment.
pub mod scoreboard;

/// Which of it is lost, and how fast to send meanwhile.
pub mod recovery;

/// The congestion window.
pub mod congestion;

/// What to send now.
mod next_segment;

/// The send sequence space.
mod send_space;

/// Data: new, lost, or to probe with.
mod send;

/// How much new data leaves at once.
mod nagle;

/// Data that waits for a window.
mod persist;

/// Acknowledgements: when, and with which window.
mod acknowledge;

/// The receive sequence space, and the window that is offered.
mod receive_space;

/// The ends of a connection.
mod close;

/// A timer expires.
mod on_timer;

/// Keep-alive, and the limit of FIN-WAIT-2.
mod keepalive;

/// How long data may stay unacknowledged.
mod user_timeout;

/// How much the path carries: what routers say, and what is found out.
pub mod path_mtu;

/// TIME-WAIT, in as few bytes as it needs.
pub mod time_wait;

/// Segments for which there is no connection.
pub mod closed;

/// What `ss -ti` would show.
pub mod info;

/// Two connections, a wire and virtual time.
#[cfg(test)]
pub(crate) mod pair;
