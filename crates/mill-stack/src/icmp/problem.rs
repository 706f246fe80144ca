//! Errors about packets that cannot be handled, and when none is sent (RFC 1122 3.2.2, RFC 4443 2.4 (e)).

use crate::outbox::{Head, Outbox};
use crate::route::Routes;
use core::net::IpAddr;
use mill_wire::checksum::{self, Sum};
use mill_wire::icmpv4::{self, Icmpv4};
use mill_wire::icmpv6::{self, Icmpv6};
use mill_wire::ipv4::{Ecn, Ipv4Header};
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::ipv6_extension::{Start, walk};
use mill_wire::protocol::Protocol;

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No socket has the port of a datagram.
    PortUnreachable,
    /// The protocol, which is named at this byte of the packet, is not implemented.
    ProtocolUnreachable { named_at: u32 },
    /// The other fragments did not come in time.
    ReassemblyTimeout,
    /// A header is invalid at this byte of the packet. The code is that of IPv6.
    Parameter {
        code: u8,
        pointer: u32,
        /// An answer also to what was sent to a group (RFC 4443 2.4 (e.3)).
        also_multicast: bool,
    },
}

/// The offending packet.
#[derive(Clone, Copy, Debug)]
pub struct Offending<'a> {
    /// From the IP header on; it may be cut off.
    pub packet: &'a [u8],
    /// The frame was sent to a group or broadcast.
    pub to_group: bool,
}

/// An error that may be sent.
pub(super) struct Error<'a> {
    head: Head,
    message: Message,
    packet: &'a [u8],
}

#[derive(Clone, Copy)]
enum Message {
    V4(Icmpv4),
    V6(Icmpv6),
}

/// The fields of an offending packet's header.
struct About {
    source: IpAddr,
    target: IpAddr,
    /// It is itself an error, or a piece that does not show what it is.
    is_beyond_answer: bool,
}

/// The error about a packet; `None` where none may be sent.
pub(super) fn error<'a>(
    problem: Problem,
    offending: &Offending<'a>,
    routes: &Routes,
) -> Option<Error<'a>> {
    let about = match offending.packet.first()? >> 4 {
        4 => about_v4(offending.packet)?,
        _ => about_v6(offending.packet)?,
    };
    let to_group = offending.to_group || !routes.is_own(about.target);
    let also_multicast = matches!(
        problem,
        Problem::Parameter {
            also_multicast: true,
            ..
        }
    );
    // RFC 1122 3.2.2, RFC 4443 2.4 (e): none about errors, groups, later fragments, or to an address that is not
    // unicast.
    if about.is_beyond_answer || (to_group && !also_multicast) || routes.is_bad_source(about.source)
    {
        return None;
    }
    let source = if routes.is_own(about.target) {
        about.target
    } else {
        routes.route(about.source)?.source
    };
    let (message, protocol, len_max) = match about.source {
        IpAddr::V4(_) => (
            Message::V4(v4(problem)),
            Protocol::ICMPV4,
            PACKET_BYTES_MAX_V4,
        ),
        IpAddr::V6(_) => (
            Message::V6(v6(problem)),
            Protocol::ICMPV6,
            usize::from(ipv6::MTU_MIN) - ipv6::HEADER_BYTES,
        ),
    };
    let quoted = len_max - icmpv6::HEADER_BYTES;
    Some(Error {
        head: Head {
            source,
            target: about.source,
            protocol,
            ecn: Ecn::NotCapable,
        },
        message,
        packet: offending.packet.get(..quoted).unwrap_or(offending.packet),
    })
}

impl Error<'_> {
    /// Says whether there was room for it.
    pub(super) fn send(&self, outbox: &mut Outbox) -> bool {
        outbox.send(&self.head, ipv6::MTU_MIN, |into| {
            into.resize(icmpv6::HEADER_BYTES, 0);
            match self.message {
                Message::V4(message) => message.emit(into),
                Message::V6(message) => message.emit(into),
            };
            into.extend_from_slice(self.packet);
            let Head { source, target, .. } = self.head;
            let (pseudo_header, offset) = match self.message {
                Message::V4(_) => (Sum::ZERO, icmpv4::CHECKSUM_OFFSET),
                Message::V6(_) => (
                    Sum::of_pseudo_header(source, target, Protocol::ICMPV6.0, into.len()),
                    icmpv6::CHECKSUM_OFFSET,
                ),
            };
            checksum::fill(pseudo_header, into, offset);
        })
    }
}

fn about_v4(packet: &[u8]) -> Option<About> {
    let (header, len) = Ipv4Header::parse_quoted(packet).ok()?;
    let is_error = header.protocol == Protocol::ICMPV4
        && Icmpv4::parse(packet.get(len..).unwrap_or_default())
            .is_ok_and(|(message, _)| message.is_error());
    Some(About {
        source: header.source.into(),
        target: header.target.into(),
        is_beyond_answer: is_error || header.fragment_offset != 0,
    })
}

fn about_v6(packet: &[u8]) -> Option<About> {
    let (header, len) = Ipv6Header::parse_quoted(packet).ok()?;
    let payload = packet.get(len..).unwrap_or_default();
    // A header chain that cannot be walked is not known to be an ICMP error.
    let upper = walk(header.next_header, payload, Start::Packet).ok();
    let is_beyond_answer = upper.is_some_and(|upper| {
        let bytes = payload.get(upper.offset..).unwrap_or_default();
        let is_error = upper.protocol == Protocol::ICMPV6
            && Icmpv6::parse(bytes).is_ok_and(|(message, _)| message.is_error());
        is_error || upper.fragment.is_some_and(|fragment| fragment.offset != 0)
    });
    Some(About {
        source: header.source.into(),
        target: header.target.into(),
        is_beyond_answer,
    })
}

fn v4(problem: Problem) -> Icmpv4 {
    let unreachable = |code| Icmpv4::Unreachable { code, mtu: 0 };
    match problem {
        Problem::PortUnreachable => unreachable(icmpv4::CODE_PORT),
        Problem::ProtocolUnreachable { .. } => unreachable(icmpv4::CODE_PROTOCOL),
        Problem::ReassemblyTimeout => Icmpv4::TimeExceeded {
            code: icmpv4::CODE_REASSEMBLY,
        },
        Problem::Parameter { pointer, .. } => Icmpv4::ParameterProblem {
            code: 0,
            pointer: u8::try_from(pointer).unwrap_or(0),
        },
    }
}

const fn v6(problem: Problem) -> Icmpv6 {
    match problem {
        Problem::PortUnreachable => Icmpv6::Unreachable {
            code: icmpv6::CODE_PORT,
        },
        // RFC 4443 3.4: IPv6 has no such message, but one for a next header that is not known.
        Problem::ProtocolUnreachable { named_at } => Icmpv6::ParameterProblem {
            code: icmpv6::CODE_NEXT_HEADER,
            pointer: named_at,
        },
        Problem::ReassemblyTimeout => Icmpv6::TimeExceeded {
            code: icmpv6::CODE_REASSEMBLY,
        },
        Problem::Parameter { code, pointer, .. } => Icmpv6::ParameterProblem { code, pointer },
    }
}

/// Bytes of a message of ICMP: as much as fits into the 576 bytes that every host takes (RFC 1812 4.3.2.3).
const PACKET_BYTES_MAX_V4: usize = 576 - 20;
