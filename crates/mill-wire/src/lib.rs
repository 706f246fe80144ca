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

#[cfg(test)]
extern crate std;

/// The header of an Ethernet frame.
pub mod ethernet;

/// Tags of virtual networks.
pub mod vlan;

/// ARP: which station has an IPv4 address.
pub mod arp;

/// What follows an IP header.
pub mod protocol;

/// The header of an IPv4 packet.
pub mod ipv4;

/// The options of an IPv4 header.
pub mod ipv4_option;

/// The header of an IPv6 packet.
pub mod ipv6;

/// Extension headers behind it.
pub mod ipv6_extension;

/// What messages of ICMP and ICMPv6 have in common.
mod icmp;

/// Messages of ICMP.
pub mod icmpv4;

/// Messages of ICMPv6.
pub mod icmpv6;

/// Messages of neighbour discovery.
pub mod ndp;

/// The packet that an ICMP error is about.
pub mod quoted;

/// The header of a UDP datagram.
pub mod udp;

/// Sequence numbers of TCP: arithmetic modulo 2^32.
pub mod seq;

/// The header of a TCP segment.
pub mod tcp;

/// The options of a TCP header.
pub mod tcp_option;

/// The sum over headers and payloads.
pub mod checksum;

/// Why bytes are not what they should be.
pub mod malformed;

pub use malformed::Malformed;

#[cfg(test)]
mod random;
