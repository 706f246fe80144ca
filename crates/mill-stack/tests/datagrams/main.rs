//! A host on a link, and frames from a peer that a test writes byte by byte: echo, UDP, fragments, extension headers,
//! neighbours, and errors.
#![expect(clippy::unwrap_used, reason = "what can't be made fails its test")]

/// A host on a link, and a peer that it knows.
mod world;

/// Packets of the peer, byte by byte.
mod packet;

/// Echoes and UDP.
mod datagrams;

/// Datagrams and segments that come in fragments.
mod pieces;

/// ARP and neighbour discovery.
mod neighbours;

/// Packets that cause an error, and the effects of errors.
mod errors;
