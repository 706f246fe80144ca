//! A TCP segment arrives: checksum, flow, and the state found for it (RFC 9293 3.10.7).

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::link::{FrameId, Link, ReceivedChecksum};
use crate::queue::SendQueue;
use crate::receive::Packet;
use crate::receive::fast_open::Opened;
use crate::receive::refusing::{Answer, Refused};
use crate::slot::SlotFlags;
use crate::unread::Unread;
use core::ops::Range;
use mill_tcp::arrived::{Events, SegmentDrop};
use mill_tcp::segment::{Ecn, Segment, SegmentOut};
use mill_tcp::time_wait::TimeWaitOutcome;
use mill_wire::checksum::{Sum, is_partial, verify};
use mill_wire::ethernet::{EthernetHeader, MacAddress};
use mill_wire::ipv4;
use mill_wire::protocol::Protocol;
use mill_wire::tcp::{CHECKSUM_OFFSET, Flags, TcpHeader};

impl<Q: SendQueue> Host<Q> {
    /// Takes a segment in a frame, between `ends` whose ports are not known yet.
    #[inline]
    pub(super) fn on_tcp(
        &mut self,
        frame: &[u8],
        packet: &Packet,
        ends: &mut Flow,
    ) -> Option<News> {
        if self.is_blocked(packet.source) {
            self.drop_frame(DropReason::Blocked);
            return None;
        }
        self.next_hops.hear(sender_of(frame));
        let bytes = frame.get(packet.body.clone()).unwrap_or_default();
        self.on_segment_bytes(packet, ends, bytes)
    }

    /// Does what follows from a segment in a frame; says whether the frame is held for a reader.
    #[inline]
    pub(super) fn after_tcp<L: Link>(
        &mut self,
        link: &mut L,
        packet: &Packet,
        news: Option<News>,
    ) -> bool {
        match news {
            Some(news) => {
                let source = Source::Frame(packet.frame, packet.body.start);
                self.on_news(link, &news, &source)
            }
            None => {
                if let Some(refused) = self.refused.take() {
                    self.hand_over(link, packet, refused);
                }
                false
            }
        }
    }

    /// Takes a segment that was put together from fragments.
    pub(crate) fn on_tcp_datagram<L: Link>(&mut self, link: &mut L, packet: &Packet, bytes: &[u8]) {
        if self.is_blocked(packet.source) {
            self.drop_frame(DropReason::Blocked);
            return;
        }
        // Its parts may have come by several ways.
        self.next_hops.hear(MacAddress::UNSPECIFIED);
        // Without a frame it can't be passed on, or no process has taken it.
        let processes = self.processes.take();
        self.takes_any = true;
        let news = self.on_segment_bytes(packet, &mut packet.ends(), bytes);
        self.takes_any = false;
        self.processes = processes;
        if let Some(news) = news {
            let is_held = self.on_news(link, &news, &Source::Bytes(bytes));
            debug_assert!(!is_held, "there is no frame to hold");
        } else if let Some(refused) = self.refused.take() {
            self.reject(refused);
        }
    }

    /// Checksum, header, flow, and what stands for it; what a connection has to say about it.
    #[inline]
    fn on_segment_bytes(&mut self, packet: &Packet, flow: &mut Flow, bytes: &[u8]) -> Option<News> {
        if !is_checksum_right(packet, bytes) {
            self.drop_frame(DropReason::Checksum);
            return None;
        }
        let mut header = TcpHeader::default();
        let Ok(len) = header.read(bytes) else {
            self.drop_frame(DropReason::Malformed);
            return None;
        };
        // In place: what was written in pieces a moment ago would have to be waited for if it were copied as a whole.
        flow.local_port = header.target;
        flow.remote_port = header.source;
        let flow = &*flow;
        let segment = Segment {
            seq: header.seq,
            ack: header.ack,
            flags: header.flags,
            window: header.window,
            urgent: header.urgent,
            options: &header.options,
            payload: bytes.get(len..).unwrap_or_default(),
            ecn: ecn_of(packet.ecn),
            merged: packet.merged,
        };
        if let Some(index) = self.recent_connection(flow) {
            return Some(self.on_connection_segment(index, &segment, len));
        }
        let hash = self.flows.hash(flow);
        let index = match self.find(flow, hash) {
            Some(Target::Connection(index)) => index,
            Some(Target::HalfOpen(index)) => {
                self.next_hops.note(flow.remote);
                self.next_hops.answer_by_the_same_way(flow.remote, self.now);
                self.on_half_open_segment(index, hash, &segment)?
            }
            Some(Target::TimeWait(number)) => {
                self.next_hops.note(flow.remote);
                let opened = self.on_time_wait_segment(number, flow, hash, &segment)?;
                return Some(opened.news(len));
            }
            // Flows have proper addresses; only those of others have to be looked at.
            None => match self.check_addresses(packet.source, packet.target) {
                Ok(()) if is_opening(segment.flags) => {
                    self.next_hops.note(flow.remote);
                    if self.has_company() && !self.takes_any && self.leaves_to_another(flow, hash) {
                        return None;
                    }
                    self.next_hops.answer_by_the_same_way(flow.remote, self.now);
                    return self
                        .on_syn(flow, hash, &segment, None)
                        .map(|opened| opened.news(len));
                }
                Ok(()) => {
                    self.next_hops.note(flow.remote);
                    self.on_unknown_segment(flow, hash, &segment)?
                }
                Err(reason) => {
                    self.drop_frame(reason);
                    return None;
                }
            },
        };
        self.recent_index = index;
        Some(self.on_connection_segment(index, &segment, len))
    }

    /// The connection of the last segment, if this one is of the same flow, as it often is within a burst.
    #[inline]
    fn recent_connection(&self, flow: &Flow) -> Option<u32> {
        let slot = self.slots.at(self.recent_index)?;
        let is_live = slot.flags.has(SlotFlags::IN_USE) && !slot.flags.has(SlotFlags::ENDED);
        (is_live && slot.flow == *flow).then_some(self.recent_index)
    }

    /// Gives the reader what is for it, then does what the events ask for; says whether the frame is held.
    #[inline]
    fn on_news<L: Link>(&mut self, link: &mut L, news: &News, source: &Source<'_>) -> bool {
        let mut is_held = false;
        if news.events.has_any(Events::READABLE) {
            is_held = self.deliver_all(link, news.index, source, news.deliver.clone());
        }
        // Last, because what has ended has no bytes to reassemble any more: those that came before FIN are the reader's.
        if news.events.has_any(LOUD) {
            self.on_events(news.index, news.events);
        }
        // `transmit` looks at the connection in any case, and arms its timer.
        is_held
    }

    /// Takes a segment that came in no frame.
    pub(crate) fn on_segment_without_frame<L: Link>(
        &mut self,
        link: &mut L,
        index: u32,
        segment: &Segment<'_>,
    ) {
        let news = self.on_connection_segment(index, segment, 0);
        self.on_news(link, &news, &Source::Bytes(segment.payload));
    }

    /// What TCP makes of a segment whose header has so many bytes: which part of it is for the reader, and what has
    /// happened besides.
    #[inline]
    fn on_connection_segment(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        header_len: usize,
    ) -> News {
        let Some(slot) = self.slots.at_mut(index) else {
            return News::default();
        };
        // One segment of a connection whose reader has read all is taken in any case: what others do not read keeps no connection
        // from being read (as Linux's least tcp_rmem).
        let is_least =
            slot.unread.is_empty() && segment.payload.len() <= usize::from(self.link.mtu);
        let is_full = !segment.payload.is_empty() && self.tcp_context.is_full() && !is_least;
        let without_text;
        let segment = if is_full {
            without_text = Segment {
                payload: &[],
                flags: segment.flags & !Flags::FIN,
                ..*segment
            };
            &without_text
        } else {
            segment
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        let arrived = slot.connection.on_segment(segment, env);
        self.tcp_context
            .count_reassembly(&mut slot.reassembly_bytes, &slot.connection);
        let has_learnt = arrived.events.has_any(Events::ESTABLISHED)
            && slot.flags.has(SlotFlags::FAST_OPEN_ASKED);
        if arrived.acked > 0 {
            slot.acked += u64::from(arrived.acked);
            if let Some(queue) = &mut slot.queue {
                queue.release(u64::from(arrived.acked));
            }
            self.confirm_next_hop(index);
            self.slots.mark_ready(index);
        }
        // What TCP says of the segment without its text goes before: a frame is dropped for one reason.
        let no_buffer = is_full.then_some(SegmentDrop::NoBuffer);
        if let Some(reason) = arrived.dropped.or(no_buffer) {
            self.drop_frame(DropReason::Segment(reason));
        }
        if has_learnt {
            self.learn_fast_open(index, segment.options, arrived.events);
        }
        self.slots.want_transmit(index);
        News {
            index,
            deliver: header_len + arrived.deliver.start..header_len + arrived.deliver.end,
            events: arrived.events,
        }
    }

    /// RFC 4861 7.3.1: data of ours has arrived, so the neighbour by way of which it went is there.
    #[inline]
    fn confirm_next_hop(&mut self, index: u32) {
        let Some(slot) = self.slots.at(index) else {
            return;
        };
        let next_hops = &mut self.next_hops;
        if slot.next_hop_version == next_hops.version()
            && next_hops
                .neighbors
                .is_confirmation_due(MacAddress(slot.next_hop), self.now)
            && let Some(next_hop) = next_hops.routes.next_hop(slot.flow.remote)
        {
            next_hops.neighbors.confirm(next_hop, self.now);
        }
    }

    /// Gives the reader what has arrived in order, and what followed it and was here already. Says whether the frame
    /// is held.
    #[inline]
    fn deliver_all<L: Link>(
        &mut self,
        link: &mut L,
        index: u32,
        source: &Source<'_>,
        deliver: Range<usize>,
    ) -> bool {
        let mut is_held = false;
        if !deliver.is_empty() {
            if let Some(slot) = self.slots.at(index)
                && let Unread::Frame { id, .. } = slot.unread
            {
                self.copy_out(index, id, link);
            }
            is_held = match *source {
                Source::Frame(frame, start) => {
                    let part = start + deliver.start..start + deliver.end;
                    let is_held = self.hold(index, frame, &part);
                    if !is_held {
                        let bytes = link.frame(frame).get(part).unwrap_or_default();
                        self.gather(index, bytes);
                    }
                    is_held
                }
                Source::Bytes(bytes) => {
                    self.gather(index, bytes.get(deliver).unwrap_or_default());
                    false
                }
            };
        }
        while let Some(run) = self
            .slots
            .at_mut(index)
            .and_then(|slot| slot.connection.next_reassembled())
        {
            if let Some(slot) = self.slots.at_mut(index) {
                self.tcp_context
                    .count_reassembly(&mut slot.reassembly_bytes, &slot.connection);
                if let Unread::Frame { id, .. } = slot.unread {
                    self.copy_out(index, id, link);
                }
            }
            self.gather(index, &run);
        }
        self.slots.mark_ready(index);
        is_held
    }

    /// Whether other processes may have connections of the same addresses.
    fn has_company(&self) -> bool {
        self.processes.is_some() || self.flows.is_listed()
    }

    fn on_time_wait_segment(
        &mut self,
        number: u32,
        flow: &Flow,
        hash: u64,
        segment: &Segment<'_>,
    ) -> Option<Opened> {
        let entry = self.flows.time_wait_mut(number)?;
        let env = &mut self.tcp_context.env(0, self.now);
        let ends_at = entry.time_wait.ends_at;
        let is_of_later = entry.time_wait.is_of_later(segment);
        let outcome = entry.time_wait.on_segment(segment, env);
        entry.note_prolonged(ends_at);
        match outcome {
            // Another process may have the later connection. Otherwise it was one's that was killed: the peer is not told of this one.
            TimeWaitOutcome::Answer(_) | TimeWaitOutcome::Dropped(_)
                if is_of_later && !is_opening(segment.flags) && self.has_company() =>
            {
                self.refuse(flow, segment, DropReason::NoListener);
            }
            TimeWaitOutcome::Answer(answer) if is_of_later => {
                self.refused = Some(Refused {
                    flow: *flow,
                    is_opening: is_opening(segment.flags),
                    answer: Answer::Acknowledgement(answer),
                    reason: DropReason::Segment(SegmentDrop::Duplicate),
                });
            }
            TimeWaitOutcome::Dropped(reason) if is_of_later => {
                self.refused = Some(Refused {
                    flow: *flow,
                    is_opening: is_opening(segment.flags),
                    answer: Answer::None,
                    reason: DropReason::Segment(reason),
                });
            }
            TimeWaitOutcome::Answer(answer) => self.answer(*flow, answer),
            TimeWaitOutcome::Dropped(reason) => self.drop_frame(DropReason::Segment(reason)),
            TimeWaitOutcome::Reset => self.flows.remove_time_wait(flow, number, hash),
            TimeWaitOutcome::Reopen { iss_after } => {
                // Without a listener the wait goes on, and the SYN is answered as any other.
                if self.listeners.find_open(flow.local(), hash).is_some() {
                    self.flows.remove_time_wait(flow, number, hash);
                    self.begin_anew(flow);
                    self.counters.time_waits_reopened += 1;
                    return self.on_syn(flow, hash, segment, Some(iss_after));
                } else {
                    self.refuse(flow, segment, DropReason::NoListener);
                }
            }
        }
        None
    }

    /// RFC 9293 3.10.7.1, 3.10.7.2: no connection; perhaps a listener. The connection, if the segment completes a
    /// handshake that a cookie stands for.
    fn on_unknown_segment(&mut self, flow: &Flow, hash: u64, segment: &Segment<'_>) -> Option<u32> {
        let kind = Flags::SYN | Flags::ACK | Flags::RST;
        match segment.flags & kind {
            Flags::ACK => return self.on_cookie(flow, hash, segment),
            // RFC 9293 3.10.7.2, fourth: nothing that a listener could make use of, and no answer.
            Flags(0) if self.listeners.find(flow.local(), hash).is_some() => {
                self.drop_frame(DropReason::Segment(SegmentDrop::NoAck));
            }
            _ => self.refuse(flow, segment, DropReason::NoListener),
        }
        None
    }

    /// Queues a segment that no connection's sending will give.
    pub(crate) fn answer(&mut self, flow: Flow, segment: SegmentOut) {
        if !self.answers.push(flow, segment) {
            self.drop_frame(DropReason::DeviceFull);
        }
    }
}

/// What a segment brought.
#[derive(Default)]
pub(super) struct News {
    index: u32,
    /// The part of the segment's bytes that is next in order for the reader.
    deliver: Range<usize>,
    events: Events,
}

impl Opened {
    /// What a SYN with a header of so many bytes brought.
    const fn news(&self, header_len: usize) -> News {
        News {
            index: self.index,
            deliver: header_len + self.deliver.start..header_len + self.deliver.end,
            events: Events::READABLE,
        }
    }
}

/// Whether a segment asks for a new connection.
pub(super) fn is_opening(flags: Flags) -> bool {
    flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
}

/// Where a segment lies.
enum Source<'a> {
    /// In a frame, from so many bytes on.
    Frame(FrameId, usize),
    Bytes(&'a [u8]),
}

/// Events that change what the host keeps of a connection.
const LOUD: Events = Events(!(Events::READABLE.0 | Events::ALL_ACKED.0));

const fn ecn_of(ecn: ipv4::Ecn) -> Ecn {
    match ecn {
        ipv4::Ecn::NotCapable => Ecn::NotCapable,
        ipv4::Ecn::Capable1 => Ecn::Capable1,
        ipv4::Ecn::Capable0 => Ecn::Capable0,
        ipv4::Ecn::CongestionExperienced => Ecn::Congested,
    }
}

/// The Ethernet address that a frame came from.
fn sender_of(frame: &[u8]) -> MacAddress {
    let header = EthernetHeader::parse(frame);
    header.map_or(MacAddress::UNSPECIFIED, |(header, _)| header.source)
}

fn is_checksum_right(packet: &Packet, bytes: &[u8]) -> bool {
    let pseudo_header =
        || Sum::of_pseudo_header(packet.source, packet.target, Protocol::TCP.0, bytes.len());
    match packet.checksum {
        ReceivedChecksum::Verified => true,
        ReceivedChecksum::Unverified => verify(pseudo_header(), bytes),
        ReceivedChecksum::MaybePartial => {
            is_partial(pseudo_header(), bytes, CHECKSUM_OFFSET) || verify(pseudo_header(), bytes)
        }
    }
}
