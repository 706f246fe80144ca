//! A network of frames: links for the TCP/IP stack, and wires that mistreat what they carry.
//!
//! ```text
//! host ── SimLink ──▶ card: checksums, cutting ──▶ wire out ──▶ switch ──▶ wire in ──▶ ring ──▶ SimLink ── host
//!         station a   flying.rs                    carrier.rs   forward   carrier.rs   station b
//! ```
//!
//! An `Ethernet` has as many stations as one likes; two are a cable. Each station has two wires, out and in,
//! each with a `Wire`'s properties, which may change while frames are under way. Frames travel through the
//! world's agenda; an engine is woken when frames have arrived at one of its stations.
//!
//! Invariants:
//! - Every frame that a host sends is scrutinised: lengths, checksums, offloads. One that a network would not carry is
//!   the test's failure, at once.
//! - A corrupted frame differs from what was sent in a way that a 16-bit sum notices.
//! - In steady state no buffer is allocated for a frame.

/// The switch and its stations, as a test sees them.
pub mod ethernet;
/// A wire for frames of others.
pub mod lane;
/// The link that a host or an engine uses.
pub mod sim_link;
/// What a wire does to frames, as options.
pub mod wire;

/// One direction of a cable at work.
mod carrier;
/// What a segment must be in the light of those before it.
mod conduct;
/// A frame between two hosts, and what a card does to it.
mod flying;
/// Where things lie in a frame.
mod layout;
/// The router that tells of packets that are too big.
mod router;
/// What a host may send at all.
mod scrutiny;
/// Stations, switches, and the way from one to the other.
mod switch;
/// What happened to each frame, as a ladder of segments.
mod trace;

pub use trace::SentSegment;

pub(crate) use flying::Flying;
pub(crate) use switch::Packets;
