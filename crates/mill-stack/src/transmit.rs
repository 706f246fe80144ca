//! Transmitting: replies first, then connections in turn. While the device is full neither keeps the other from
//! sending.

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::link::{ExternalSent, Link, LinkProperties};
use crate::neighbor::outgoing;
use crate::queue::{SendQueue, Vanished};
use crate::slot::SlotFlags;
use crate::socket::SocketError;
use emit::{Ends, emit, wire_frame_len_max};
use mill_tcp::config::Dscp;
use mill_tcp::segment::SegmentOut;
use mill_wire::ethernet::MacAddress;

/// A segment's bytes.
mod emit;

/// A segment that leaves as several frames, or as one that the device cuts, of which something is left to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    index: u32,
    flow: Flow,
    mac: MacAddress,
    dscp: Dscp,
    segment: SegmentOut,
    /// Payload bytes that went out.
    sent: u32,
    /// Bytes of the connection that were acknowledged when it was cut; its queue has moved by what came since.
    acked: u64,
}

impl Cut {
    /// Whether it belongs to the connection in this slot.
    pub(crate) const fn is_of(&self, index: u32) -> bool {
        self.index == index
    }
}

/// How sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing is left.
    All,
    /// As much as was allowed has left, and there is more.
    Share,
    /// The link is full, and something waits only for it.
    Full,
}

/// How a connection's turn ended.
enum Turn {
    /// It has nothing more to send, or waits for something that will wake it.
    Done,
    /// It has more; other connections have their turn first.
    More,
    /// The device has no room; some frames may have left before.
    Full { has_sent: bool },
}

/// How long a segment TCP may make on this link, payload only. Where the device does not cut, we do, and one
/// look at the connection still serves for many frames.
pub(crate) fn segment_bytes_max(link: &LinkProperties) -> u32 {
    let one = u32::from(link.mtu).saturating_sub(IP_AND_TCP_BYTES_MIN);
    if link.segment_bytes_max > u32::from(link.mtu) {
        let most = link.segment_bytes_max.min(u32::from(u16::MAX));
        one.max(most.saturating_sub(IP_AND_TCP_BYTES_MAX))
    } else {
        one.max(CUT_BYTES_MAX)
    }
}

/// IPv4 and TCP headers without options: the least overhead of a full segment.
const IP_AND_TCP_BYTES_MIN: u32 = 40;

/// IPv6 and TCP headers with all options.
const IP_AND_TCP_BYTES_MAX: u32 = 100;

/// Bytes that are cut into frames here at once: 16 frames of Ethernet's size.
const CUT_BYTES_MAX: u32 = 16 * 1448;

/// Segments of one connection before the next one's turn.
const QUANTUM: u32 = 4;

impl<Q: SendQueue> Host<Q> {
    /// Transmits until nothing is left, the link is full, or so many frames have left, and those that the turn of a
    /// connection was about.
    pub(crate) fn transmit_share<L: Link>(&mut self, link: &mut L, frames: u64) -> Sent {
        let share_end = self.counters.frames_out.saturating_add(frames);
        if !self.transmit_first(link) || !self.transmit_cut(link) {
            return Sent::Full;
        }
        while self.counters.frames_out < share_end
            && let Some(index) = self.slots.next_to_send()
        {
            if !self.transmit_turn_of(index, link) {
                return Sent::Full;
            }
        }
        // Work found while sending: neighbours to resolve, resets of connections that failed.
        if !self.transmit_outgoing(link) || !self.transmit_answers(link) {
            Sent::Full
        } else if self.slots.has_sending() {
            Sent::Share
        } else {
            Sent::All
        }
    }

    /// Sends everything that precedes the connections; returns whether the link had room for all of it. Within a
    /// burst it leaves room for the replies that are still to come.
    pub(crate) fn transmit_first<L: Link>(&mut self, link: &mut L) -> bool {
        let has_served = self.is_overtaken && self.transmit_overtaken(link);
        let before = self.counters.frames_out;
        let has_room = self.transmit_outgoing(link)
            && self.transmit_answers(link)
            && self.transmit_datagrams(link);
        // A device that was full already, perhaps by connections, leaves it as it was.
        let has_filled = self.is_overtaken || self.counters.frames_out > before;
        self.is_overtaken = !has_room && has_filled && !has_served;
        has_room
    }

    /// Replies or datagrams have filled the device: the first connection that has something to send has its turn now,
    /// so that a flood of SYNs or of datagrams cannot keep all connections from sending. Returns whether one has sent
    /// something; then replies and datagrams are first again.
    #[cold]
    fn transmit_overtaken<L: Link>(&mut self, link: &mut L) -> bool {
        let before = self.counters.frames_out;
        let mut has_room = self.transmit_cut(link);
        while has_room
            && self.counters.frames_out == before
            && let Some(index) = self.slots.next_to_send()
        {
            has_room = self.transmit_turn_of(index, link);
        }
        self.counters.frames_out > before
    }

    /// The turn of a connection that was taken out of the list, and its next place there; says whether the link had room.
    fn transmit_turn_of<L: Link>(&mut self, index: u32, link: &mut L) -> bool {
        match self.transmit_turn(index, link) {
            Turn::Done => true,
            Turn::More => {
                self.slots.send_last(index);
                true
            }
            // When a full device has room for one frame again, the next connection gets it: else a connection that
            // always has something to send would get every frame, and acknowledgements and probes of the others would
            // never leave.
            Turn::Full { has_sent: true } => {
                self.slots.send_last(index);
                false
            }
            Turn::Full { has_sent: false } => {
                self.slots.send_first(index);
                false
            }
        }
    }

    /// Requests and answers of ARP and neighbour discovery; returns whether the link had room for all.
    fn transmit_outgoing<L: Link>(&mut self, link: &mut L) -> bool {
        while self.next_hops.neighbors.has_outgoing() {
            let Some(room) = link.reserve(outgoing::FRAME_BYTES_MAX) else {
                return false;
            };
            let Some(frame) = self.next_hops.neighbors.next_outgoing() else {
                return true;
            };
            let len = frame.emit(self.next_hops.mac, room);
            link.transmit(len, crate::link::Offload::default());
            self.counters.frames_out += 1;
        }
        true
    }

    /// Answers, until there are no more or the link has no room; says whether it had.
    fn transmit_answers<L: Link>(&mut self, link: &mut L) -> bool {
        use crate::host::Way;
        while let Some(answer) = self.answers.pop() {
            let mac = match self.next_hops.way(answer.flow.remote, self.now) {
                Way::To(mac) => mac,
                Way::Asking(next_hop) => {
                    self.park_answer(next_hop, answer);
                    continue;
                }
                Way::Failed => {
                    self.drop_frame(DropReason::Unresolved);
                    continue;
                }
                Way::NoRoute => {
                    self.drop_frame(DropReason::NoRoute);
                    continue;
                }
            };
            let Some(room) = link.reserve(wire_frame_len_max(&self.link)) else {
                self.answers.put_back(answer);
                return false;
            };
            let dscp = self.dscp_of_answer(&answer.flow);
            let ends = Ends::new(&self.link, mac, &answer.flow, dscp);
            let (len, offload) = emit(room, &ends, &answer.segment);
            link.transmit(len, offload);
            self.counters.frames_out += 1;
        }
        true
    }

    /// Of a segment outside of a connection's stream: as the connection's if there is one, else as the listener's.
    fn dscp_of_answer(&self, flow: &Flow) -> Dscp {
        if !self.tcp_context.has_dscp() {
            return Dscp::default();
        }
        let hash = self.flows.hash(flow);
        let of_connection = match self.find(flow, hash) {
            Some(Target::Connection(index)) => self.slots.at(index).map(|slot| slot.config),
            _ => None,
        };
        let of_listener = || {
            let listener = self.listeners.find(flow.local(), hash)?;
            Some(self.listeners.at(listener)?.config)
        };
        let number = of_connection.or_else(of_listener).unwrap_or(0);
        self.tcp_context.config(number).dscp
    }

    fn transmit_turn<L: Link>(&mut self, index: u32, link: &mut L) -> Turn {
        let slot = self.slots.at(index);
        if slot.is_some_and(|slot| slot.flags.has(SlotFlags::SMALL_PATH)) {
            self.search_path(index);
        }
        for sent in 0..QUANTUM {
            match self.transmit_next(index, link) {
                Turn::More => {}
                Turn::Full { has_sent: false } if sent > 0 => return Turn::Full { has_sent: true },
                done => return done,
            }
        }
        Turn::More
    }

    /// The next segment of a connection.
    fn transmit_next<L: Link>(&mut self, index: u32, link: &mut L) -> Turn {
        let Some(slot) = self.slots.at_mut(index) else {
            return Turn::Done;
        };
        if !slot.is_sending() {
            return self.stop_sending(index);
        }
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        let env = &mut self.tcp_context.env(slot.config, self.now);
        if slot.connection.has_said_all(queued, env) {
            self.arm(index);
            return self.stop_sending(index);
        }
        let Some(mac) = self.next_hop_of(index) else {
            self.arm(index);
            return self.stop_sending(index);
        };
        let Some(room) = link.reserve(wire_frame_len_max(&self.link)) else {
            self.arm(index);
            return Turn::Full { has_sent: false };
        };
        let Some(slot) = self.slots.at_mut(index) else {
            return Turn::Done;
        };
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        let env = &mut self.tcp_context.env(slot.config, self.now);
        // Not moved: a large value that was only just written would stall the copy on the processor's store buffer.
        let next = slot.connection.next_segment(queued, env);
        let Some(segment) = &next else {
            self.arm(index);
            return self.stop_sending(index);
        };
        let dscp = self.tcp_context.config(slot.config).dscp;
        let ends = Ends::new(&self.link, mac, &slot.flow, dscp);
        if segment.len > u32::from(segment.mss) {
            let cut = Cut {
                index,
                flow: slot.flow,
                mac,
                dscp,
                segment: *segment,
                sent: 0,
                acked: slot.acked,
            };
            self.cut = Some(cut);
            return if self.transmit_cut(link) {
                Turn::More
            } else {
                Turn::Full { has_sent: true }
            };
        }
        let payload = ends.payload(room, segment);
        let copied = match &mut slot.queue {
            Some(queue) if segment.len > 0 => queue.copy(u64::from(segment.offset), payload),
            _ => Ok(()),
        };
        if copied.is_err() {
            self.fail(index, SocketError::Vanished);
            return Turn::Done;
        }
        let (len, offload) = emit(room, &ends, segment);
        link.transmit(len, offload);
        self.counters.frames_out += 1;
        Turn::More
    }

    /// The connection leaves the list; an empty queue is free for others.
    fn stop_sending(&mut self, index: u32) -> Turn {
        if let Some(slot) = self.slots.stop_sending(index)
            && let Some(queue) = slot.queue.take_if(|queue| queue.is_empty())
        {
            self.vacant_queues.put(queue);
        }
        Turn::Done
    }

    /// Sends what is left of a long segment, in frames that the device takes; says whether the link had room for all of it.
    fn transmit_cut<L: Link>(&mut self, link: &mut L) -> bool {
        let Some(mut cut) = self.cut.take() else {
            return true;
        };
        let (properties, flow) = (self.link, cut.flow);
        let ends = Ends::new(&properties, cut.mac, &flow, cut.dscp);
        let mut piece = cut.segment;
        while cut.sent < cut.segment.len {
            let Some(slot) = self.slots.at_mut(cut.index) else {
                return true;
            };
            let Some(queue) = slot.queue.as_mut() else {
                return true;
            };
            debug_assert!(slot.flow == cut.flow && !slot.flags.has(SlotFlags::ENDED));
            let payload = ends.payload_of_next(cut.segment.len - cut.sent, piece.mss);
            emit::cut(&mut piece, &cut.segment, cut.sent, payload);
            // Bytes that were acknowledged meanwhile are no longer in the queue, and need not be sent.
            let moved = slot.acked - cut.acked;
            let Some(offset) = u64::from(piece.offset).checked_sub(moved) else {
                cut.sent += piece.len;
                continue;
            };
            match transmit_piece(link, &mut **queue, &ends, (&piece, offset)) {
                Ok(Piece::Copied) => {}
                Ok(Piece::InPlace) => self.counters.segments_in_place += 1,
                Ok(Piece::Waits) => {
                    self.cut = Some(cut);
                    return false;
                }
                Err(Vanished) => {
                    self.fail(cut.index, SocketError::Vanished);
                    return true;
                }
            }
            self.counters.frames_out += 1;
            cut.sent += piece.len;
        }
        true
    }
}

/// How a piece of a segment has left.
enum Piece {
    Copied,
    /// Its payload, or the end of it, from where it lies.
    InPlace,
    /// It has not: the link has no room.
    Waits,
}

/// Sends a piece of a segment, whose payload begins at `offset` in the queue. Where the device cuts it, as much as lies in one place
/// is sent from there.
fn transmit_piece<Q: SendQueue, L: Link>(
    link: &mut L,
    queue: &mut Q,
    ends: &Ends<'_>,
    (piece, offset): (&SegmentOut, u64),
) -> Result<Piece, Vanished> {
    let len_max = ends.frame_len_max_of(piece.len, piece.mss);
    let Some(room) = link.reserve(len_max) else {
        return Ok(Piece::Waits);
    };
    let external = match ends.takes_external(piece) {
        true => queue.external(offset, piece.len),
        false => None,
    };
    let external_len = external.map_or(0, |bytes| bytes.len());
    let payload = ends.payload(room, piece);
    let copied_len = payload.len() - external_len;
    let (copied, _) = payload.split_at_mut(copied_len);
    queue.copy(offset, copied)?;
    let (len, offload) = emit(room, ends, piece);
    let offset = offset + copied_len as u64;
    let external_len = u32::try_from(external_len).unwrap_or_default();
    if external_len > 0
        && let Some(bytes) = queue.external(offset, external_len)
    {
        match link.transmit_external(len - bytes.len(), offload, bytes) {
            ExternalSent::Yes => return Ok(Piece::InPlace),
            ExternalSent::Full => return Ok(Piece::Waits),
            ExternalSent::Vanished => return Err(Vanished),
            ExternalSent::Unable => {}
        }
        // The room is the same still, with what was written into it.
        let Some(room) = link.reserve(len_max) else {
            return Ok(Piece::Waits);
        };
        let (_, rest) = ends.payload(room, piece).split_at_mut(copied_len);
        queue.copy(offset, rest)?;
    }
    link.transmit(len, offload);
    Ok(Piece::Copied)
}
