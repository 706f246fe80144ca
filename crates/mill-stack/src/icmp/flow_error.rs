//! The flow that an error is about: read out of the packet that it quotes.

use crate::flow::Flow;
use crate::path_mtu::plateau_below;
use mill_wire::icmpv4::{self, Icmpv4};
use mill_wire::icmpv6::{self, Icmpv6};
use mill_wire::ipv4::Ipv4Header;
use mill_wire::ipv6;
use mill_wire::protocol::Protocol;
use mill_wire::quoted::Quoted;
use mill_wire::seq::SeqNumber;

/// A router or the target rejected a packet of ours. Whether it was really ours, and recent, is checked by the owner
/// of the flow (RFC 5927 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowError {
    pub flow: Flow,
    pub protocol: Protocol,
    /// Of the segment, if the protocol is TCP.
    pub seq: SeqNumber,
    pub kind: FlowErrorKind,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowErrorKind {
    /// The packet was too large; packets of so many bytes fit.
    PacketTooBig { mtu: u32 },
    /// It was not delivered. `hard` if there is no point in trying again (RFC 1122 4.2.3.9), which RFC 5927 5.2 lets
    /// established connections ignore.
    Unreachable { hard: bool },
}

impl FlowError {
    /// `None` if the quoted packet can't be read.
    pub(super) fn of_v4(message: &Icmpv4, packet: &[u8]) -> Option<Self> {
        let quoted = Quoted::parse_v4(packet).ok()?;
        let kind = match *message {
            Icmpv4::Unreachable {
                code: icmpv4::CODE_FRAGMENTATION_NEEDED,
                mtu: 0,
            } => {
                // RFC 1191 5: from a router that does not know of it.
                let (header, _) = Ipv4Header::parse_quoted(packet).ok()?;
                FlowErrorKind::PacketTooBig {
                    mtu: plateau_below(header.total_len).into(),
                }
            }
            Icmpv4::Unreachable {
                code: icmpv4::CODE_FRAGMENTATION_NEEDED,
                mtu,
            } => FlowErrorKind::PacketTooBig { mtu: mtu.into() },
            Icmpv4::Unreachable { code, .. } => FlowErrorKind::Unreachable {
                hard: matches!(
                    code,
                    icmpv4::CODE_PROTOCOL | icmpv4::CODE_PORT | 9 | 10 | PROHIBITED_V4
                ),
            },
            Icmpv4::TimeExceeded { .. } | Icmpv4::ParameterProblem { .. } => {
                FlowErrorKind::Unreachable { hard: false }
            }
            _ => return None,
        };
        Some(Self::new(&quoted, kind))
    }

    /// `None` if the quoted packet can't be read, or the message is impossible.
    pub(super) fn of_v6(message: &Icmpv6, packet: &[u8]) -> Option<Self> {
        let quoted = Quoted::parse_v6(packet).ok()?;
        let kind = match *message {
            // RFC 8201 4: every link carries more, so no router on the path sends this.
            Icmpv6::PacketTooBig { mtu } if mtu < u32::from(ipv6::MTU_MIN) => return None,
            Icmpv6::PacketTooBig { mtu } => FlowErrorKind::PacketTooBig { mtu },
            Icmpv6::Unreachable { code } => FlowErrorKind::Unreachable {
                hard: matches!(code, icmpv6::CODE_PROHIBITED | icmpv6::CODE_PORT),
            },
            // RFC 4443 3.4: an unknown next header is an unknown protocol.
            Icmpv6::ParameterProblem { code, .. } => FlowErrorKind::Unreachable {
                hard: code == icmpv6::CODE_NEXT_HEADER,
            },
            Icmpv6::TimeExceeded { .. } => FlowErrorKind::Unreachable { hard: false },
            _ => return None,
        };
        Some(Self::new(&quoted, kind))
    }

    const fn new(quoted: &Quoted, kind: FlowErrorKind) -> Self {
        Self {
            flow: Flow {
                local: quoted.source,
                remote: quoted.target,
                local_port: quoted.source_port,
                remote_port: quoted.target_port,
            },
            protocol: quoted.protocol,
            seq: quoted.seq,
            kind,
        }
    }
}

/// RFC 1812 5.2.7.1: an administrator has forbidden it; 9 and 10 are older forms of it (RFC 1122 3.2.2.1).
const PROHIBITED_V4: u8 = 13;
