//! Packet formats: bytes to values and back, nothing else.
//!
//! Each format has a value type with `parse` (bytes in; the value and where its payload begins out, or
//! [`Malformed`]) and `emit` (value in; bytes out, the length returned). Nothing here allocates, and no
//! input panics: lengths are checked once, in `parse`.
//!
//! Invariants:
//! - Whatever `emit` writes, `parse` reads as the same value.
//! - Numbers are in host order in values and in network order in bytes.
#![no_std]
#![forbid(unsafe_code)]

/// Sequence numbers of TCP: arithmetic modulo 2^32.
pub mod seq;

/// The header of a TCP segment.
pub mod tcp;

/// The options of a TCP header.
pub mod tcp_option;

/// Why bytes are not what they should be.
pub mod malformed;

pub use malformed::Malformed;
