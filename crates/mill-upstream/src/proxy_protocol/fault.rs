//! Why a header can't be read.

use super::HEADER_BYTES_MAX;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocolFault {
    /// It begins with neither signature.
    Signature,
    /// Version 1: the line is longer than 107 bytes, or not of its form.
    Line,
    /// Version 1: an address is not of its family, or a port is none.
    Address,
    /// A binary header of another version than 2.
    Version(u8),
    /// Neither LOCAL nor PROXY.
    Command(u8),
    /// An address family or a transport that is not defined.
    Family(u8),
    /// Version 2: too short for the addresses of its family.
    Short,
    /// Longer than [`HEADER_BYTES_MAX`].
    TooLong(usize),
    /// A field that reaches beyond the header.
    Tlv,
    /// The checksum is not that of the header, or there are two.
    Checksum,
}

impl fmt::Display for ProxyProtocolFault {
    /// In nginx's words where it has them; `Signature`, `Line` and `Address` are its "broken header", which the caller
    /// logs with the bytes.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature | Self::Line | Self::Address => out.write_str("broken header"),
            Self::Version(version) => write!(out, "unknown PROXY protocol version: {version}"),
            Self::Command(command) => write!(out, "unknown PROXY protocol command: {command}"),
            Self::Family(family) => {
                write!(out, "unknown PROXY protocol address family: 0x{family:02x}")
            }
            Self::Short => out.write_str("header is too short"),
            Self::TooLong(len) => write!(
                out,
                "header is too large: {len} bytes, at most {HEADER_BYTES_MAX}"
            ),
            Self::Tlv => out.write_str("broken PROXY protocol TLV"),
            Self::Checksum => out.write_str("broken PROXY protocol checksum"),
        }
    }
}

impl std::error::Error for ProxyProtocolFault {}
