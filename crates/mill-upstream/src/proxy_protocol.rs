//! The PROXY protocol, versions 1 and 2: what a proxy says of a connection's two ends before the connection's own bytes.
//!
//! Both begin so that they cannot be taken for each other, nor for HTTP. `parse` reads either; a receiver must know
//! that its peer sends one, and must not guess. (haproxy, doc/proxy-protocol.txt.)
//!
//! Read strictly: what another reader might take for something else, or what the specification tells to drop, is a
//! fault. After it the connection is closed.

/// The checksum of version 2.
mod crc32c;
/// Values to bytes.
mod emit;
/// Why a header can't be read.
mod fault;
/// Type-length-value fields of version 2.
mod tlv;
/// The line of version 1.
mod v1;
/// The binary header of version 2.
mod v2;

pub use emit::{emit_v1, emit_v2};
pub use fault::ProxyProtocolFault;
pub use tlv::{Tlv, TlvName, TlvValue, Tlvs};

use std::net::SocketAddr;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// `None` if the sender speaks for itself (LOCAL, a health check) or says nothing of the ends (UNKNOWN): the
    /// connection's own addresses hold.
    pub ends: Option<Ends<'a>>,
    /// Of version 2; empty otherwise.
    pub tlvs: Tlvs<'a>,
    /// Bytes of the header; the connection's own bytes follow.
    pub len: usize,
}

/// The two ends of the proxied connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends<'a> {
    /// Both of one family.
    Ip {
        source: SocketAddr,
        destination: SocketAddr,
    },
    /// Paths of sockets, without the NULs behind them; perhaps empty.
    Unix {
        source: &'a [u8],
        destination: &'a [u8],
    },
}

/// Parses the header at the beginning of `bytes`; `None` when it is incomplete. A peer that sends no header is recognised
/// by its first wrong byte. Nothing is allocated.
pub fn parse(bytes: &[u8]) -> Result<Option<Header<'_>>, ProxyProtocolFault> {
    match bytes.first() {
        None => Ok(None),
        Some(b'\r') => v2::parse(bytes),
        Some(_) => v1::parse(bytes),
    }
}

/// Whether `bytes` may become a header that begins with `signature`: as far as they go, they are the same.
fn begins_like(bytes: &[u8], signature: &[u8]) -> bool {
    bytes.iter().zip(signature).all(|(a, b)| a == b)
}

/// Bytes of a header with its fields; what newer nginx accepts. A certificate's names and a few more fields fit.
pub const HEADER_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
