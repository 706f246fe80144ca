//! A host on a link, and frames from a peer that a test writes byte by byte: echo, UDP, fragments, extension headers,
//! neighbours, and errors.
#![expect(clippy::unwrap_used, reason = "what can't be made fails its test")]

mod datagrams;
mod errors;
mod neighbours;
mod packet;
mod pieces;
mod world;
