//! ICMP and ICMPv6: echo, errors to send, errors that arrive (RFC 1122 3.2.2, RFC 4443).

use crate::drop_reason::DropReason;
use crate::outbox::{Head, Outbox};
use crate::route::Routes;
use bucket::Bucket;
use core::net::IpAddr;
pub use flow_error::{FlowError, FlowErrorKind};
use mill_tcp::time::Instant;
use mill_wire::checksum::{self, Sum};
use mill_wire::icmpv4::{self, Icmpv4};
use mill_wire::icmpv6::{self, Icmpv6};
use mill_wire::ipv4::Ecn;
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;
pub use problem::{Offending, Problem};

/// How many messages may be sent in a while.
mod bucket;

/// The flow that an error is about.
mod flow_error;

/// Errors about packets that cannot be handled.
mod problem;

/// The messages of one host.
#[derive(Debug)]
pub struct Icmp {
    echoes: Bucket,
    errors: Bucket,
}

/// A message that arrived, with what its packet said.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub source: IpAddr,
    /// Ours, a group's, or broadcast.
    pub target: IpAddr,
    /// From the type on.
    pub bytes: &'a [u8],
}

/// The result of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It was answered.
    Answered,
    /// It is about a packet of ours.
    Error(FlowError),
    /// It is for the neighbour cache, which checks the rest of it.
    Ndp(Ndp),
    Dropped(DropReason),
}

impl Icmp {
    /// `per_second` are the echo replies, and the errors, that may be sent.
    pub const fn new(per_second: u32, seed: u64) -> Self {
        Self {
            echoes: Bucket::new(per_second, seed),
            errors: Bucket::new(per_second, !seed),
        }
    }

    /// A message arrived: its checksum is verified here. Replies go to `outbox`, in packets of up to `mtu` bytes.
    pub fn on_message(
        &mut self,
        message: &Message<'_>,
        routes: &Routes,
        mtu: u16,
        outbox: &mut Outbox,
        now: Instant,
    ) -> Received {
        if !checksum::verify(pseudo_header(message), message.bytes) {
            return Received::Dropped(DropReason::Checksum);
        }
        let next = match message.source {
            IpAddr::V4(_) => on_v4(message, routes),
            IpAddr::V6(_) => on_v6(message, routes),
        };
        match next {
            Next::Echo(source) if self.echoes.take(now) => echo(message, source, mtu, outbox),
            Next::Echo(_) => Received::Dropped(DropReason::RateLimit),
            Next::Done(received) => received,
        }
    }

    /// Sends an error about a packet to its sender, if one may be sent. Returns whether it was.
    pub fn send_error(
        &mut self,
        problem: Problem,
        offending: &Offending<'_>,
        routes: &Routes,
        outbox: &mut Outbox,
        now: Instant,
    ) -> bool {
        let Some(error) = problem::error(problem, offending, routes) else {
            return false;
        };
        self.errors.take(now) && error.send(outbox)
    }
}

/// The action for a message.
enum Next {
    /// Echo it from this address.
    Echo(IpAddr),
    Done(Received),
}

const fn dropped(reason: DropReason) -> Next {
    Next::Done(Received::Dropped(reason))
}

fn on_v4(message: &Message<'_>, routes: &Routes) -> Next {
    let Ok((parsed, len)) = Icmpv4::parse(message.bytes) else {
        return dropped(DropReason::Malformed);
    };
    match parsed {
        // RFC 1122 3.2.2.6: broadcast requests are not answered.
        Icmpv4::EchoRequest { .. } if routes.is_own(message.target) => Next::Echo(message.target),
        Icmpv4::Unreachable { .. }
        | Icmpv4::TimeExceeded { .. }
        | Icmpv4::ParameterProblem { .. } => {
            let quoted = message.bytes.get(len..).unwrap_or_default();
            Next::Done(received(FlowError::of_v4(&parsed, quoted), routes))
        }
        _ => dropped(DropReason::UnknownProtocol),
    }
}

fn on_v6(message: &Message<'_>, routes: &Routes) -> Next {
    if message
        .bytes
        .first()
        .is_some_and(|kind| Ndp::is_kind(*kind))
    {
        return match Ndp::parse(message.bytes) {
            Ok((parsed, _)) => Next::Done(Received::Ndp(parsed)),
            Err(_) => dropped(DropReason::Malformed),
        };
    }
    let Ok((parsed, len)) = Icmpv6::parse(message.bytes) else {
        return dropped(DropReason::Malformed);
    };
    match parsed {
        Icmpv6::EchoRequest { .. } if routes.is_own(message.target) => Next::Echo(message.target),
        // RFC 4443 4.2: a request to a group is answered, too, from an address of ours.
        Icmpv6::EchoRequest { .. } => match routes.route(message.source) {
            Some(hop) => Next::Echo(hop.source),
            None => dropped(DropReason::NoRoute),
        },
        Icmpv6::Unreachable { .. }
        | Icmpv6::PacketTooBig { .. }
        | Icmpv6::TimeExceeded { .. }
        | Icmpv6::ParameterProblem { .. } => {
            let quoted = message.bytes.get(len..).unwrap_or_default();
            Next::Done(received(FlowError::of_v6(&parsed, quoted), routes))
        }
        _ => dropped(DropReason::UnknownProtocol),
    }
}

/// RFC 792, RFC 4443 4.2: the reply has everything that the request had. What both families' replies differ in from
/// their requests is the type alone.
fn echo(message: &Message<'_>, source: IpAddr, mtu: u16, outbox: &mut Outbox) -> Received {
    let (protocol, kind, offset) = match source {
        IpAddr::V4(_) => (Protocol::ICMPV4, ECHO_REPLY_V4, icmpv4::CHECKSUM_OFFSET),
        IpAddr::V6(_) => (Protocol::ICMPV6, ECHO_REPLY_V6, icmpv6::CHECKSUM_OFFSET),
    };
    let head = Head {
        source,
        target: message.source,
        protocol,
        ecn: Ecn::NotCapable,
    };
    let is_sent = outbox.send(&head, mtu, |into| {
        into.extend_from_slice(message.bytes);
        if let Some(first) = into.first_mut() {
            *first = kind;
        }
        let pseudo_header = match source {
            IpAddr::V4(_) => Sum::ZERO,
            IpAddr::V6(_) => Sum::of_pseudo_header(source, message.source, protocol.0, into.len()),
        };
        checksum::fill(pseudo_header, into, offset);
    });
    if is_sent {
        Received::Answered
    } else {
        Received::Dropped(DropReason::DeviceFull)
    }
}

/// An error is used if it can be parsed and is about a packet that we may have sent.
fn received(error: Option<FlowError>, routes: &Routes) -> Received {
    match error {
        Some(error) if routes.is_own(error.flow.local) => Received::Error(error),
        Some(_) => Received::Dropped(DropReason::NotForUs),
        None => Received::Dropped(DropReason::Malformed),
    }
}

/// RFC 4443 2.3: ICMPv6 has one.
fn pseudo_header(message: &Message<'_>) -> Sum {
    match message.source {
        IpAddr::V4(_) => Sum::ZERO,
        IpAddr::V6(_) => Sum::of_pseudo_header(
            message.source,
            message.target,
            Protocol::ICMPV6.0,
            message.bytes.len(),
        ),
    }
}

/// Types, as registered with IANA.
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests;
