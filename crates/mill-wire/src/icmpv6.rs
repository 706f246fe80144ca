//! Messages of ICMPv6 (RFC 4443). Those of neighbour discovery have a file of their own.
//!
//! ```text
//! | Type, 1 | Code, 1 | Checksum, 2 | by type, 4 | echoed bytes, or the packet that caused an error |
//! ```

use crate::Malformed;
use crate::icmp::{self, Head, of_pair};

/// Bytes before the echoed bytes or the quoted packet.
pub const HEADER_BYTES: usize = icmp::HEADER_BYTES;

/// Where the checksum lies; it covers the pseudo-header and the whole message.
pub const CHECKSUM_OFFSET: usize = 2;

/// A message without what follows its first eight bytes. The checksum is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6 {
    EchoRequest {
        ident: u16,
        seq: u16,
    },
    EchoReply {
        ident: u16,
        seq: u16,
    },
    Unreachable {
        code: u8,
    },
    PacketTooBig {
        /// Bytes that fit through.
        mtu: u32,
    },
    TimeExceeded {
        code: u8,
    },
    ParameterProblem {
        code: u8,
        /// The byte of the packet that is to blame.
        pointer: u32,
    },
    /// Types that are read elsewhere or not at all.
    Other {
        kind: u8,
        code: u8,
        rest: [u8; 4],
    },
}

/// Codes of [`Icmpv6::Unreachable`] (RFC 4443 3.1).
pub const CODE_NO_ROUTE: u8 = 0;
pub const CODE_PROHIBITED: u8 = 1;
pub const CODE_ADDRESS: u8 = 3;
pub const CODE_PORT: u8 = 4;

/// Code of [`Icmpv6::TimeExceeded`]: fragments did not come in time (RFC 4443 3.3).
pub const CODE_REASSEMBLY: u8 = 1;

/// Codes of [`Icmpv6::ParameterProblem`] (RFC 4443 3.4, RFC 7112 5).
pub const CODE_HEADER_FIELD: u8 = 0;
pub const CODE_NEXT_HEADER: u8 = 1;
pub const CODE_OPTION: u8 = 2;
pub const CODE_INCOMPLETE_CHAIN: u8 = 3;

impl Icmpv6 {
    /// The message and the length of its header in bytes, behind which echoed bytes or the quoted packet begin.
    pub fn parse(message: &[u8]) -> Result<(Self, usize), Malformed> {
        let head = Head::parse(message)?;
        let (high, low) = head.pair();
        let long = u32::from_be_bytes(head.rest);
        let parsed = match (head.kind, head.code) {
            (ECHO_REQUEST, 0) => Self::EchoRequest {
                ident: high,
                seq: low,
            },
            (ECHO_REPLY, 0) => Self::EchoReply {
                ident: high,
                seq: low,
            },
            (UNREACHABLE, code) => Self::Unreachable { code },
            // RFC 4443 3.2: the code is ignored.
            (PACKET_TOO_BIG, _) => Self::PacketTooBig { mtu: long },
            (TIME_EXCEEDED, code) => Self::TimeExceeded { code },
            (PARAMETER_PROBLEM, code) => Self::ParameterProblem {
                code,
                pointer: long,
            },
            (kind, code) => Self::Other {
                kind,
                code,
                rest: head.rest,
            },
        };
        Ok((parsed, HEADER_BYTES))
    }

    /// Whether it is about another packet: such a message is never answered with an error (RFC 4443 2.1, 2.4 (e.1)).
    pub const fn is_error(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::PacketTooBig { .. }
            | Self::TimeExceeded { .. }
            | Self::ParameterProblem { .. } => true,
            Self::Other { kind, .. } => *kind < ECHO_REQUEST || *kind == REDIRECT,
            Self::EchoRequest { .. } | Self::EchoReply { .. } => false,
        }
    }

    /// Writes the header with a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`HEADER_BYTES`].
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let (kind, code, rest) = match *self {
            Self::EchoRequest { ident, seq } => (ECHO_REQUEST, 0, of_pair(ident, seq)),
            Self::EchoReply { ident, seq } => (ECHO_REPLY, 0, of_pair(ident, seq)),
            Self::Unreachable { code } => (UNREACHABLE, code, [0; 4]),
            Self::PacketTooBig { mtu } => (PACKET_TOO_BIG, 0, mtu.to_be_bytes()),
            Self::TimeExceeded { code } => (TIME_EXCEEDED, code, [0; 4]),
            Self::ParameterProblem { code, pointer } => {
                (PARAMETER_PROBLEM, code, pointer.to_be_bytes())
            }
            Self::Other { kind, code, rest } => (kind, code, rest),
        };
        Head { kind, code, rest }.emit(into)
    }
}

/// Types, as registered with IANA. Errors have those below 128.
const UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const REDIRECT: u8 = 137;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{any_bytes, round_trip};

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Icmpv6::EchoRequest { ident: 1, seq: 2 },
            Icmpv6::EchoReply {
                ident: 0xffff,
                seq: 0x1234,
            },
            Icmpv6::Unreachable { code: CODE_PORT },
            Icmpv6::PacketTooBig { mtu: 1280 },
            Icmpv6::PacketTooBig { mtu: u32::MAX },
            Icmpv6::TimeExceeded {
                code: CODE_REASSEMBLY,
            },
            Icmpv6::ParameterProblem {
                code: CODE_OPTION,
                pointer: 0x12345,
            },
            Icmpv6::Other {
                kind: REDIRECT,
                code: 0,
                rest: [0; 4],
            },
        ] {
            round_trip(&message, HEADER_BYTES, Icmpv6::emit, Icmpv6::parse);
        }
        any_bytes(2, |_, _| {}, Icmpv6::emit, Icmpv6::parse);
    }

    #[test]
    fn types_below_128_are_errors_and_so_is_redirect() {
        for kind in 0..=255 {
            let (message, _) = Icmpv6::parse(&[kind, 0, 0, 0, 0, 0, 0, 0]).unwrap();
            assert_eq!(message.is_error(), kind < 128 || kind == 137, "{kind}");
        }
    }
}
