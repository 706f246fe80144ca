//! Requests of rtnetlink(7), and their answers.

use mill_sys::netlink::{Netlink, Received};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use std::io;

/// The requests.
pub(super) mod question {
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::address::AddressMessage;
    use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
    use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage};
    use netlink_packet_route::route::{RouteAttribute, RouteMessage};
    use netlink_packet_route::{AddressFamily, route::RouteHeader};

    pub(in super::super) fn link(index: u32) -> RouteNetlinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = index;
        // Traffic counters are not needed.
        let mask = vec![LinkExtentMask::SkipStats];
        message.attributes.push(LinkAttribute::ExtMask(mask));
        RouteNetlinkMessage::GetLink(message)
    }

    pub(in super::super) fn addresses(index: u32) -> RouteNetlinkMessage {
        let mut message = AddressMessage::default();
        message.header.index = index;
        RouteNetlinkMessage::GetAddress(message)
    }

    pub(in super::super) fn neighbors(index: u32) -> RouteNetlinkMessage {
        let mut message = NeighbourMessage::default();
        message.attributes.push(NeighbourAttribute::IfIndex(index));
        RouteNetlinkMessage::GetNeighbour(message)
    }

    /// The main table of one family.
    pub(in super::super) fn routes(of_ipv6: bool) -> RouteNetlinkMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = if of_ipv6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        };
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        let table = u32::from(RouteHeader::RT_TABLE_MAIN);
        message.attributes.push(RouteAttribute::Table(table));
        RouteNetlinkMessage::GetRoute(message)
    }
}

/// A message of the kernel.
#[derive(Debug)]
pub(super) enum KernelMessage {
    Route(RouteNetlinkMessage),
    /// The end of a dump; the error that has ended it, if it was one.
    End(io::Result<()>),
    /// A message of this type that could not be parsed.
    Unknown(u16),
}

/// Sends a request, and returns the one answer.
pub(super) fn ask(
    socket: &Netlink,
    question: RouteNetlinkMessage,
) -> io::Result<Vec<RouteNetlinkMessage>> {
    send(socket, question, NLM_F_REQUEST)?;
    let mut answers = Vec::new();
    match receive(socket, &mut answers)?.end {
        Some(Err(error)) => Err(error),
        Some(Ok(())) | None => Ok(answers),
    }
}

/// Requests a dump. If the kernel reports that something changed meanwhile, requests it again.
pub(super) fn dump(
    socket: &Netlink,
    question: RouteNetlinkMessage,
) -> io::Result<Vec<RouteNetlinkMessage>> {
    for _ in 0..DUMPS_MAX {
        send(socket, question.clone(), NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut answers = Vec::new();
        let mut is_whole = true;
        loop {
            let part = receive(socket, &mut answers)?;
            is_whole &= part.is_whole;
            match part.end {
                None => {}
                Some(Ok(())) if is_whole => return Ok(answers),
                Some(Ok(())) => break,
                Some(Err(error)) => return Err(error),
            }
        }
    }
    Err(io::Error::other("it changes faster than it can be read"))
}

fn send(socket: &Netlink, question: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(question));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes)
}

/// What one datagram says about the dump that it belongs to.
struct Part {
    /// Set in the last datagram of a dump: its result.
    end: Option<io::Result<()>>,
    /// Nothing has changed since the dump began.
    is_whole: bool,
}

fn receive(socket: &Netlink, into: &mut Vec<RouteNetlinkMessage>) -> io::Result<Part> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let Received::Messages(len) = socket.receive(&mut buffer)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut part = Part {
        end: None,
        is_whole: true,
    };
    for_each(
        buffer.get(..len).unwrap_or_default(),
        |message, is_disturbed| {
            part.is_whole &= !is_disturbed;
            match message {
                KernelMessage::Route(message) => into.push(message),
                KernelMessage::End(result) => part.end = Some(result),
                KernelMessage::Unknown(_) => {}
            }
        },
    );
    Ok(part)
}

/// Calls a function with each message of a datagram, and with whether its dump was interrupted by a change.
pub(super) fn for_each(mut bytes: &[u8], mut each: impl FnMut(KernelMessage, bool)) {
    while let Ok(frame) = NetlinkBuffer::new_checked(bytes) {
        let kind = frame.message_type();
        let is_disturbed = frame.flags() & NLM_F_DUMP_INTR != 0;
        let len = usize::try_from(frame.length()).unwrap_or(usize::MAX);
        each(parse(bytes, kind), is_disturbed);
        // Messages are aligned to four bytes.
        let next = len.next_multiple_of(4);
        bytes = bytes.get(next..).unwrap_or_default();
    }
}

fn parse(bytes: &[u8], kind: u16) -> KernelMessage {
    match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map(|it| it.payload) {
        Ok(NetlinkPayload::InnerMessage(message)) => KernelMessage::Route(message),
        Ok(NetlinkPayload::Done(done)) => KernelMessage::End(result_of(done.code)),
        Ok(NetlinkPayload::Error(error)) => {
            KernelMessage::End(result_of(error.code.map_or(0, std::num::NonZeroI32::get)))
        }
        Ok(_) | Err(_) => KernelMessage::Unknown(kind),
    }
}

/// The kernel's error numbers are negative.
fn result_of(code: i32) -> io::Result<()> {
    if code < 0 {
        Err(io::Error::from_raw_os_error(code.saturating_neg()))
    } else {
        Ok(())
    }
}

/// The kernel fills datagrams of a dump up to 32 KiB if there is room (netlink(7)); an interface with many virtual
/// functions may need more.
pub(super) const BUFFER_BYTES: usize = 65536;

/// How often a dump is tried; the second try nearly always succeeds.
const DUMPS_MAX: usize = 10;
