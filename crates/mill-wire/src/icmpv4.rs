//! Messages of ICMP (RFC 792, RFC 1122 3.2.2, RFC 1191 4).
//!
//! ```text
//! | Type, 1 | Code, 1 | Checksum, 2 | by type, 4 | echoed bytes, or the packet that caused an error |
//! ```

use crate::Malformed;
use crate::icmp::{self, Head, of_pair};

/// Bytes before the echoed bytes or the quoted packet.
pub const HEADER_BYTES: usize = icmp::HEADER_BYTES;

/// Where the checksum lies; it covers the whole message and no pseudo-header.
pub const CHECKSUM_OFFSET: usize = 2;

/// A message without what follows its first eight bytes. The checksum is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv4 {
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
        /// Bytes that fit through, with [`CODE_FRAGMENTATION_NEEDED`]; 0 from routers that know of no such thing.
        mtu: u16,
    },
    TimeExceeded {
        code: u8,
    },
    ParameterProblem {
        code: u8,
        /// The byte of the packet that is to blame, with code 0.
        pointer: u8,
    },
    /// Types that hosts leave alone: redirect, timestamp, source quench (RFC 6633) and the unknown ones.
    Other {
        kind: u8,
        code: u8,
        rest: [u8; 4],
    },
}

/// Codes of [`Icmpv4::Unreachable`] (RFC 792, RFC 1122 3.2.2.1, RFC 1812 5.2.7.1).
pub const CODE_NET: u8 = 0;
pub const CODE_HOST: u8 = 1;
pub const CODE_PROTOCOL: u8 = 2;
pub const CODE_PORT: u8 = 3;
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;
pub const CODE_SOURCE_ROUTE_FAILED: u8 = 5;

/// Code of [`Icmpv4::TimeExceeded`]: fragments did not come in time.
pub const CODE_REASSEMBLY: u8 = 1;

impl Icmpv4 {
    /// The message and the length of its header in bytes, behind which echoed bytes or the quoted packet begin.
    pub fn parse(message: &[u8]) -> Result<(Self, usize), Malformed> {
        let head = Head::parse(message)?;
        let (high, low) = head.pair();
        let parsed = match (head.kind, head.code) {
            (ECHO_REQUEST, 0) => Self::EchoRequest {
                ident: high,
                seq: low,
            },
            (ECHO_REPLY, 0) => Self::EchoReply {
                ident: high,
                seq: low,
            },
            (UNREACHABLE, code) => Self::Unreachable { code, mtu: low },
            (TIME_EXCEEDED, code) => Self::TimeExceeded { code },
            (PARAMETER_PROBLEM, code) => Self::ParameterProblem {
                code,
                pointer: head.rest[0],
            },
            (kind, code) => Self::Other {
                kind,
                code,
                rest: head.rest,
            },
        };
        Ok((parsed, HEADER_BYTES))
    }

    /// Whether it is about another packet: such a message is never answered with an error (RFC 1122 3.2.2).
    pub const fn is_error(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::TimeExceeded { .. }
            | Self::ParameterProblem { .. } => true,
            Self::Other { kind, .. } => matches!(*kind, SOURCE_QUENCH | REDIRECT),
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
            Self::Unreachable { code, mtu } => (UNREACHABLE, code, of_pair(0, mtu)),
            Self::TimeExceeded { code } => (TIME_EXCEEDED, code, [0; 4]),
            Self::ParameterProblem { code, pointer } => {
                (PARAMETER_PROBLEM, code, [pointer, 0, 0, 0])
            }
            Self::Other { kind, code, rest } => (kind, code, rest),
        };
        Head { kind, code, rest }.emit(into)
    }
}

/// Types, as registered with IANA.
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const SOURCE_QUENCH: u8 = 4;
const REDIRECT: u8 = 5;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{any_bytes, round_trip};

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Icmpv4::EchoRequest { ident: 1, seq: 2 },
            Icmpv4::EchoReply {
                ident: 0xffff,
                seq: 0x1234,
            },
            Icmpv4::Unreachable {
                code: CODE_FRAGMENTATION_NEEDED,
                mtu: 1400,
            },
            Icmpv4::Unreachable {
                code: CODE_PORT,
                mtu: 0,
            },
            Icmpv4::TimeExceeded {
                code: CODE_REASSEMBLY,
            },
            Icmpv4::ParameterProblem {
                code: 0,
                pointer: 20,
            },
            Icmpv4::Other {
                kind: REDIRECT,
                code: 1,
                rest: [10, 0, 0, 1],
            },
        ] {
            round_trip(&message, HEADER_BYTES, Icmpv4::emit, Icmpv4::parse);
        }
        any_bytes(2, |_, _| {}, Icmpv4::emit, Icmpv4::parse);
    }

    #[test]
    fn every_type_is_an_error_or_not() {
        for kind in 0..=255 {
            let (message, _) = Icmpv4::parse(&[kind, 0, 0, 0, 0, 0, 0, 0]).unwrap();
            assert_eq!(
                message.is_error(),
                [3, 4, 5, 11, 12].contains(&kind),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_echo_with_a_code_is_no_echo() {
        let (message, _) = Icmpv4::parse(&[8, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        assert!(matches!(message, Icmpv4::Other { kind: 8, .. }));
    }
}
