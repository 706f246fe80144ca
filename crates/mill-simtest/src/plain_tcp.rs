//! A second TCP, only for tests: straight from RFC 9293 3.10, slow, without options. It shares no code with ours, neither
//! TCP nor formats nor checksums, so that a mistake that our stack makes at both ends of a connection is found here.
//!
//! ```text
//! host         frames in and out, connections by their ports, a listener
//!   header       the bytes of a frame, and the segment in them
//!   neighbours   answers to ARP and neighbour discovery
//!   connection   state, timers; segment_arrives (3.10.7), output (what to send now)
//!     inbound      the bytes that came, and the window that is offered for more
//!     examiner     what the other end must not do: each rule with the words that a failed world shows
//!   application  what is said over a connection: an HTTP server, and clients that compare each byte
//! forger       no TCP at all: SYNs and acknowledgements with forged addresses
//! ```
//!
//! Its receiver has no congestion control to mislead and its sender none to obey: a few segments in flight, one timer of a
//! fixed time that doubles. What it does otherwise than an ordinary TCP, a seed decides (`habits.rs`).

/// What the applications over it say, and what they find.
pub mod application;
/// Segments with forged addresses.
pub mod forger;
/// How one end behaves.
pub mod habits;
/// A host with this TCP.
pub mod host;

/// One connection.
mod connection;
/// What the other end must not do.
mod examiner;
/// The bytes of a frame.
mod header;
/// What came, in order.
mod inbound;
/// Answers to questions for a hardware address.
mod neighbours;
/// What is to be sent now.
mod output;
/// RFC 9293 3.10.7.
mod segment_arrives;
/// Sequence numbers.
mod sequence;
