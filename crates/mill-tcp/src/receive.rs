//! What the segment carries: text and FIN (RFC 9293 3.10.7.4, seventh and eighth).

use crate::arrived::{Arrived, Events, SegmentDrop};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::reassembly::Limits;
use crate::segment::Segment;
use core::ops::Range;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

impl Connection {
    /// Something arrived before what comes in front of it, or waits to be fetched.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.cold
            .as_ref()
            .is_some_and(|cold| !cold.reassembly.is_empty())
    }

    /// Bytes of the payload that are next in order: they are the reader's now.
    pub(crate) fn deliver(
        &mut self,
        part: Range<usize>,
        segment: &Segment<'_>,
        env: &mut Env<'_>,
    ) -> Range<usize> {
        let bytes = u32::try_from(part.len()).unwrap_or(u32::MAX);
        self.tune_by_echo(segment, env);
        self.rcv.deliver_to(self.rcv.nxt() + bytes);
        env.shared.counters.delivered_bytes += u64::from(bytes);
        let segment_bytes = self.measure_segment(segment);
        self.schedule_ack(segment_bytes, env);
        part
    }

    /// Keeps the size of the peer's segments: the largest seen. Gives the size of these.
    fn measure_segment(&mut self, segment: &Segment<'_>) -> u16 {
        let merged = usize::from(segment.merged.max(1));
        let bytes = segment.payload.len().div_ceil(merged);
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        self.rcv.measure_segment(bytes);
        bytes
    }

    /// Text and FIN of an acceptable segment whose text begins at `text_at`.
    pub(crate) fn take_text(
        &mut self,
        segment: &Segment<'_>,
        text_at: SeqNumber,
        arrived: &mut Arrived,
        env: &mut Env<'_>,
    ) {
        let has_fin = segment.flags.has(Flags::FIN);
        if segment.payload.is_empty() && !has_fin {
            return;
        }
        // After the peer's FIN nothing more can come: it is left alone.
        if !self.state.may_receive() {
            return;
        }
        let text = Text::within(segment, text_at, self.rcv.nxt(), self.rcv.adv());
        if self.flags.has(ConnectionFlags::ORPHAN) && !text.bytes.is_empty() {
            return self.refuse_text(segment, arrived, env);
        }
        if text.duplicate_end.is_after(text_at) {
            self.note_duplicate(text_at, text.duplicate_end, env);
        }
        // Some of it did not fit into the window: the peer is to know at once where the edge is.
        if text.is_cut {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
        if text.bytes.is_empty() && !text.has_fin {
            arrived.dropped = Some(SegmentDrop::OutsideWindow);
        } else if text.at == self.rcv.nxt() {
            self.take_in_order(&text, segment, arrived, env);
        } else {
            self.take_out_of_order(&text, segment, arrived, env);
        }
    }

    /// It will not be read: the peer learns by RST (RFC 2525 2.17; RFC 9293 3.6.1).
    fn refuse_text(&mut self, segment: &Segment<'_>, arrived: &mut Arrived, env: &mut Env<'_>) {
        arrived.events |= self.end(Events::CLOSED, env);
        arrived.dropped = Some(SegmentDrop::AfterClose);
        self.answer_with_reset(segment.ack);
    }

    fn take_in_order(
        &mut self,
        text: &Text,
        segment: &Segment<'_>,
        arrived: &mut Arrived,
        env: &mut Env<'_>,
    ) {
        let mut has_fin = text.has_fin;
        let mut bytes = text.bytes.clone();
        if let Some(new_len) = self.len_before_range(text) {
            // Some of the text was here before: it is put between what is here, whose bytes count. If there is no
            // room for that, what lies in front is taken.
            has_fin = false;
            bytes.end = if self.keep(text, segment, arrived, env) {
                bytes.start
            } else {
                bytes.start + new_len
            };
        }
        if !bytes.is_empty() {
            arrived.deliver = self.deliver(bytes, segment, env);
            arrived.events |= Events::READABLE;
        }
        if self.has_gap()
            && let Some(cold) = &mut self.cold
        {
            // A hole is filled, whole or in part: acknowledged at once (RFC 5681 4.2).
            let (end, fin_follows) = cold.reassembly.advance(self.rcv.nxt());
            let bytes = self.rcv.deliver_to(end);
            env.shared.counters.delivered_bytes += u64::from(bytes);
            self.flags.set(ConnectionFlags::ACK_NOW, true);
            has_fin |= fin_follows;
            if bytes > 0 {
                arrived.events |= Events::READABLE;
            }
        }
        if has_fin {
            arrived.events |= self.fin_arrives(env);
        }
    }

    /// If the text reaches into what is here already: how many bytes lie in front of that.
    fn len_before_range(&self, text: &Text) -> Option<usize> {
        let ranges = self.cold.as_ref()?.reassembly.ranges();
        let first = ranges.first()?.0;
        let overlaps = first.is_before(text.end());
        overlaps.then(|| usize::try_from(first - text.at).unwrap_or(0))
    }

    fn take_out_of_order(
        &mut self,
        text: &Text,
        segment: &Segment<'_>,
        arrived: &mut Arrived,
        env: &mut Env<'_>,
    ) {
        env.shared.counters.out_of_order += 1;
        self.measure_segment(segment);
        self.flags.set(ConnectionFlags::ACK_NOW, true);
        self.keep(text, segment, arrived, env);
    }

    /// Copies the text, within the limits; says whether they allowed it.
    fn keep(
        &mut self,
        text: &Text,
        segment: &Segment<'_>,
        arrived: &mut Arrived,
        env: &mut Env<'_>,
    ) -> bool {
        let limits = Limits {
            bytes_max: env.config.reassembly_bytes_max,
            ranges_max: env.config.reassembly_ranges_max,
            memory_left_bytes: env.memory_left_bytes,
        };
        let bytes = segment.payload.get(text.bytes.clone()).unwrap_or_default();
        let reassembly = &mut self.cold_part(env).reassembly;
        match reassembly.insert(text.at, bytes, text.has_fin, &limits) {
            Ok(twice) => {
                // RFC 2883 4.2.3: of several parts that came twice the first one is told. One lies in front of `text` if that
                // is not the whole.
                if let Some((start, end)) = twice
                    && text.bytes.start == 0
                {
                    self.note_duplicate(start, end, env);
                }
                true
            }
            Err(why) => {
                arrived.dropped = Some(why);
                false
            }
        }
    }
}

/// The part of a segment's text that lies in the window.
#[derive(Debug)]
struct Text {
    at: SeqNumber,
    bytes: Range<usize>,
    has_fin: bool,
    /// Up to here it was here before.
    duplicate_end: SeqNumber,
    /// Something lay behind the window.
    is_cut: bool,
}

impl Text {
    /// Behind the text; FIN not counted.
    fn end(&self) -> SeqNumber {
        self.at + u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    fn within(
        segment: &Segment<'_>,
        text_at: SeqNumber,
        rcv_nxt: SeqNumber,
        rcv_adv: SeqNumber,
    ) -> Self {
        let payload_len = segment.payload.len();
        let len = u32::try_from(payload_len).unwrap_or(u32::MAX);
        let end = text_at + len;
        let at = text_at.max(rcv_nxt);
        let kept_end = end.min(rcv_adv).max(at);
        let skip = usize::try_from(at - text_at).unwrap_or(usize::MAX);
        let keep = usize::try_from(kept_end - at).unwrap_or(0);
        let start = skip.min(payload_len);
        let is_cut = end.is_after(rcv_adv);
        Self {
            at,
            bytes: start..(start + keep).min(payload_len),
            // FIN counts if all text before it is kept, and needs no room of its own.
            has_fin: segment.flags.has(Flags::FIN) && !is_cut,
            duplicate_end: rcv_nxt.min(end),
            is_cut,
        }
    }
}

#[cfg(test)]
mod tests;
