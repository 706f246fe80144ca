//! What every TCP segment that a host sends must be in the light of those before it. Seen from outside, by what the
//! headers say: a receiver of ours never takes back a window or an acknowledgement, a sender never sends what was not
//! offered or what is too long, and both keep to the options that the SYNs agreed on.

use super::layout::{Layout, TCP};
use super::trace::{Flow, flow_of};
use mill_stack::link::Offload;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{Flags, TcpHeader};
use std::collections::BTreeMap;

/// Both directions of all connections that hosts of a world have had.
#[derive(Debug, Default)]
pub(super) struct Conduct {
    directions: BTreeMap<Flow, Direction>,
}

/// What one end has said.
#[derive(Clone, Copy, Debug)]
struct Direction {
    syn: Syn,
    /// The highest acknowledgement, and the right edge of the window: nothing before both SYNs are known.
    ack: Option<SeqNumber>,
    edge: Option<SeqNumber>,
    ts_value: u32,
    has_finished: bool,
}

/// What its SYN offered.
#[derive(Clone, Copy, Debug)]
struct Syn {
    mss: Option<u16>,
    window_scale: Option<u8>,
    timestamps: bool,
    sack: bool,
    seq: SeqNumber,
}

impl Conduct {
    pub(super) const fn new() -> Self {
        Self {
            directions: BTreeMap::new(),
        }
    }

    /// Looks at a segment that a host sends, and says what it should not have done.
    pub(super) fn observe(&mut self, frame: &[u8], offload: Offload) -> Result<(), &'static str> {
        let Some(layout) = Layout::of(frame).filter(|it| it.protocol == TCP && !it.is_fragment)
        else {
            return Ok(());
        };
        let segment = frame.get(layout.transport..layout.end).unwrap_or_default();
        let (Ok((header, header_len)), Some(flow)) =
            (TcpHeader::parse(segment), flow_of(frame, &layout))
        else {
            return Ok(());
        };
        if header.flags.has(Flags::SYN) {
            self.on_syn(flow, &header);
            return Ok(());
        }
        // A reset may be for a connection that no host knows.
        if header.flags.has(Flags::RST) {
            return Ok(());
        }
        let back = (flow.1, flow.0);
        let (Some(peer), Some(own)) = (
            self.directions.get(&back).copied(),
            self.directions.get_mut(&flow),
        ) else {
            return Ok(());
        };
        let payload = segment.len() - header_len;
        let piece = offload
            .segmentation
            .map_or(payload, |it| payload.min(usize::from(it.mss)));
        own.check_options(&peer, &header)?;
        // RFC 6691: options shorten the payload.
        let mss = usize::from(
            peer.syn
                .mss
                .unwrap_or(if layout.is_ipv6 { 1220 } else { 536 }),
        );
        if piece + header_len - 20 > mss.max(MSS_MIN) {
            return Err("a segment longer than the peer's MSS");
        }
        let end = header.seq + u32::try_from(payload).unwrap_or(0);
        // One byte beyond is a window probe (RFC 9293 3.8.6.1).
        if let Some(edge) = peer.edge
            && payload > 0
            && end.is_after(edge + 1)
        {
            return Err("data beyond the window that was offered");
        }
        own.check_receiver(&peer, &header)?;
        own.has_finished |= header.flags.has(Flags::FIN);
        if own.has_finished && peer.has_finished {
            // What follows at these ports may belong to another conversation that a late SYN or cookie has opened.
            self.directions.remove(&flow);
            self.directions.remove(&back);
        }
        Ok(())
    }

    fn on_syn(&mut self, flow: Flow, header: &TcpHeader) {
        let syn = Syn {
            mss: header.options.mss,
            window_scale: header.options.window_scale,
            timestamps: header.options.timestamps.is_some(),
            sack: header.options.sack_permitted,
            seq: header.seq,
        };
        let known = self.directions.get(&flow);
        if known.is_some_and(|known| known.syn.seq == header.seq) {
            return;
        }
        let is_answer = header.flags.has(Flags::ACK);
        let back = (flow.1, flow.0);
        let asked = self.directions.get(&back).map(|it| it.syn.seq + 1);
        if is_answer && known.is_some() && asked == Some(header.ack) {
            // A second answer to one SYN, with other options perhaps: one of them holds a cookie, and which of them counts is
            // not to be seen from outside.
            self.directions.remove(&flow);
            self.directions.remove(&back);
            return;
        }
        let value = header.options.timestamps.map_or(0, |times| times.value);
        let direction = Direction {
            syn,
            ack: is_answer.then_some(header.ack),
            // The window of a SYN is not scaled (RFC 7323 2.2).
            edge: is_answer.then(|| header.ack + u32::from(header.window)),
            ts_value: value,
            has_finished: false,
        };
        self.directions.insert(flow, direction);
        if !is_answer {
            // What the other end said belongs to an earlier connection.
            self.directions.remove(&back);
        }
    }
}

impl Direction {
    fn check_options(&mut self, peer: &Self, header: &TcpHeader) -> Result<(), &'static str> {
        let agreed = self.syn.timestamps && peer.syn.timestamps;
        match header.options.timestamps {
            Some(_) if !agreed => return Err("timestamps that were not agreed on"),
            None if agreed => return Err("no timestamp although it was agreed on"),
            Some(times) => {
                if times.value.wrapping_sub(self.ts_value) > 1 << 31 {
                    return Err("a timestamp that goes back");
                }
                self.ts_value = times.value;
            }
            None => {}
        }
        let agreed = self.syn.sack && peer.syn.sack;
        if !agreed && !header.options.sack.is_empty() {
            return Err("SACK that was not agreed on");
        }
        if header.options.mss.is_some() || header.options.window_scale.is_some() {
            return Err("an option of SYNs");
        }
        for (start, end) in header.options.sack.as_slice() {
            if !end.is_after(*start) {
                return Err("a SACK block without bytes");
            }
        }
        Ok(())
    }

    fn check_receiver(&mut self, peer: &Self, header: &TcpHeader) -> Result<(), &'static str> {
        if !header.flags.has(Flags::ACK) {
            return Err("a segment without ACK");
        }
        if self.ack.is_some_and(|ack| ack.is_after(header.ack)) {
            return Err("an acknowledgement that goes back");
        }
        self.ack = Some(header.ack);
        let shift = match (self.syn.window_scale, peer.syn.window_scale) {
            (Some(own), Some(_)) => u32::from(own.min(14)),
            _ => 0,
        };
        let edge = header.ack + (u32::from(header.window) << shift);
        // RFC 7323 2.4 forgives what the scaling rounds off.
        if self
            .edge
            .is_some_and(|old| old.is_after(edge + ((1 << shift) - 1)))
        {
            return Err("a window that shrinks");
        }
        if self.edge.is_none_or(|old| edge.is_after(old)) {
            self.edge = Some(edge);
        }
        Ok(())
    }
}

/// Bytes: senders need not go below this, whatever a peer asks for (as Linux's `tcp_min_snd_mss`).
const MSS_MIN: usize = 48;
