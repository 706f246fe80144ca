//! SYNs, and the acknowledgements that end handshakes (RFC 9293 3.10.7.2, 3.10.7.4; RFC 4987).

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::host::Host;
use crate::host::beyond;
use crate::queue::SendQueue;
use crate::receive::fast_open::{FastOpen, Opened};
use crate::slot::SlotFlags;
use crate::socket::ListenerId;
use crate::syn_cache::Entry;
use crate::syn_cookie::{self, AgreedOptions};
use mill_tcp::arrived::{Events, SegmentDrop};
use mill_tcp::connection::Connection;
use mill_tcp::ecn::accurate::Feedback;
use mill_tcp::listen::{HalfOpen, HalfOpenOutcome};
use mill_tcp::segment::Segment;
use mill_tcp::state::State;
use mill_tcp::timestamps::TimestampState;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

impl<Q: SendQueue> Host<Q> {
    /// RFC 9293 3.10.7.2, third: a SYN for a flow that nothing stands for. `iss_after` is what an earlier connection
    /// of the flow used. Gives what the reader gets at once, if the SYN opens the connection by itself (Fast Open).
    pub(super) fn on_syn(
        &mut self,
        flow: &Flow,
        hash: u64,
        syn: &Segment<'_>,
        iss_after: Option<SeqNumber>,
    ) -> Option<Opened> {
        self.counters.syns_in += 1;
        let Some(id) = self.listeners.find_open(flow.local(), hash) else {
            self.refuse(flow, syn, DropReason::NoListener);
            return None;
        };
        let listener = self.listeners.at_mut(id)?;
        // As Linux: a client that could not be accepted now should repeat its SYN later.
        if listener.is_full() {
            self.drop_frame(DropReason::ListenQueueFull);
            return None;
        }
        if self.slots.count() >= self.limits.connections_max {
            self.drop_frame(DropReason::NoMemory);
            return None;
        }
        let config = listener.config;
        let is_cache_full = listener.is_half_open_full()
            || self.flows.syn_cache().len() >= self.limits.half_open_max as usize;
        let iss = beyond(self.secrets.iss(flow, self.now), iss_after);
        let ts_offset = self.secrets.timestamp_offset(flow);
        let mss = self.mss_to(flow.remote, config);
        let fast_open = self.fast_open_of(id, flow, syn);
        if fast_open == FastOpen::Open && !is_cache_full {
            let numbers = (iss, ts_offset, mss);
            return Some(self.open_fast(id, flow, hash, syn, numbers));
        }
        let env = &mut self.tcp_context.env(config, self.now);
        let half_open = HalfOpen::on_syn(syn, iss, ts_offset, mss, env);
        if is_cache_full {
            self.answer_with_cookie(id, config, flow, half_open);
            return None;
        }
        let mut syn_ack = half_open.syn_ack(env);
        if let FastOpen::Give(cookie) = fast_open {
            syn_ack.options.fast_open = Some(cookie);
            self.counters.fast_open_cookies_sent += 1;
        }
        let entry = Entry {
            half_open,
            flow: *flow,
            listener: id.0,
        };
        if let Some(listener) = self.listeners.at_mut(id) {
            listener.on_half_open();
        }
        self.flows.insert_half_open(hash, entry);
        self.answer(*flow, syn_ack);
        None
    }

    /// RFC 4987 3.6: nothing is kept; the SYN-ACK says it all.
    fn answer_with_cookie(
        &mut self,
        id: ListenerId,
        config: u16,
        flow: &Flow,
        mut half_open: HalfOpen,
    ) {
        let key = self.secrets.cookie;
        half_open.iss = syn_cookie::make(key, flow, half_open.irs, half_open.mss, self.now);
        if half_open.timestamps {
            let value = half_open.ts.value_at(self.now.tick());
            let options = AgreedOptions {
                snd_wind_shift: half_open.snd_wind_shift,
                sack: half_open.sack,
                ecn: half_open.ecn == Feedback::Classic,
            };
            let decrement = syn_cookie::timestamp_decrement(value, options);
            half_open.ts.lower_by(decrement);
        } else {
            // There is nowhere to keep these.
            half_open.snd_wind_shift = None;
            half_open.sack = false;
            // The acknowledgement says itself whether it is one of accurate ECN.
            if half_open.ecn == Feedback::Classic {
                half_open.ecn = Feedback::None;
            }
        }
        let syn_ack = half_open.syn_ack(&mut self.tcp_context.env(config, self.now));
        if let Some(listener) = self.listeners.at_mut(id) {
            listener.on_cookie_sent(self.now);
        }
        self.counters.cookies_sent += 1;
        self.answer(*flow, syn_ack);
    }

    /// A segment for a handshake in the SYN cache; the connection, if it is complete now.
    pub(super) fn on_half_open_segment(
        &mut self,
        index: u32,
        hash: u64,
        segment: &Segment<'_>,
    ) -> Option<u32> {
        let entry = self.flows.syn_cache().at(index)?;
        let flow = entry.flow;
        let id = ListenerId(entry.listener);
        let config = self.listeners.at(id)?.config;
        let completes =
            segment.flags.has(Flags::ACK) && !segment.flags.has_any(Flags::SYN | Flags::RST);
        let (retransmits, iss) = (entry.half_open.retransmits, entry.half_open.iss);
        if completes && !self.may_complete(id, retransmits, segment) {
            return None;
        }
        if completes && segment.ack != iss + 1 && self.is_cookie(id, &flow, segment) {
            // The SYN came twice: the first was answered with a cookie, because the cache was full then.
            self.forget_half_open(index);
            return self.on_cookie(&flow, hash, segment);
        }
        if completes && segment.ack != iss + 1 && self.processes.is_some() {
            // The SYN came twice, and another process may have answered the second one: it is offered this.
            self.refuse(&flow, segment, DropReason::Segment(SegmentDrop::BadAck));
            return None;
        }
        let env = &mut self.tcp_context.env(config, self.now);
        let entry = self.flows.half_open_mut(index)?;
        match entry.half_open.on_segment(segment, env) {
            HalfOpenOutcome::Established(connection) => {
                self.count_half_open_out(id);
                Some(self.establish(id, flow, hash, Some(index), connection))
            }
            HalfOpenOutcome::Answer(answer) => {
                self.answer(flow, answer);
                None
            }
            HalfOpenOutcome::Reset => {
                self.counters.failed_opens += 1;
                self.forget_half_open(index);
                None
            }
            HalfOpenOutcome::Dropped(reason) => {
                self.drop_frame(DropReason::Segment(reason));
                None
            }
        }
    }

    /// Whether the listener takes one more connection now. If not, the acknowledgement is dropped and the SYN-ACK
    /// comes again later, as in Linux.
    fn may_complete(&mut self, id: ListenerId, retransmits: u8, segment: &Segment<'_>) -> bool {
        let Some(listener) = self.listeners.at(id) else {
            return false;
        };
        if listener.is_full() {
            self.drop_frame(DropReason::ListenQueueFull);
            return false;
        }
        if self.slots.count() >= self.limits.connections_max {
            self.drop_frame(DropReason::NoMemory);
            return false;
        }
        // Deferred: the connection waits for its first data until the SYN-ACK was sent again.
        !listener.options.deferred || retransmits > 0 || !segment.is_empty()
    }

    /// Whether an acknowledgement holds a cookie of ours.
    fn is_cookie(&self, id: ListenerId, flow: &Flow, segment: &Segment<'_>) -> bool {
        let listener = self.listeners.at(id);
        let (irs, iss) = (segment.seq - 1, segment.ack - 1);
        listener.is_some_and(|it| it.takes_cookies(self.now))
            && syn_cookie::open(self.secrets.cookie, flow, irs, iss, self.now).is_some()
    }

    /// An acknowledgement that nothing stands for: the end of a handshake if it holds a cookie of ours.
    pub(super) fn on_cookie(
        &mut self,
        flow: &Flow,
        hash: u64,
        segment: &Segment<'_>,
    ) -> Option<u32> {
        let listener = self.listeners.find(flow.local(), hash);
        let Some((id, listener)) = listener.and_then(|id| Some((id, self.listeners.at(id)?)))
        else {
            self.refuse(flow, segment, DropReason::NoListener);
            return None;
        };
        if !listener.takes_cookies(self.now) {
            self.refuse(
                flow,
                segment,
                DropReason::Segment(SegmentDrop::NoConnection),
            );
            return None;
        }
        let config = listener.config;
        let irs = segment.seq - 1;
        let iss = segment.ack - 1;
        let Some(mss) = syn_cookie::open(self.secrets.cookie, flow, irs, iss, self.now) else {
            self.counters.cookies_refused += 1;
            self.refuse(
                flow,
                segment,
                DropReason::Segment(SegmentDrop::NoConnection),
            );
            return None;
        };
        if !self.may_complete(id, 1, segment) {
            return None;
        }
        let settings = self.tcp_context.config(config);
        let stamp = segment.options.timestamps.filter(|_| settings.timestamps);
        let agreed = stamp
            .map(|stamp| syn_cookie::options_of(stamp.echo).within(settings))
            .unwrap_or_default();
        let mut half_open = HalfOpen {
            iss,
            irs,
            ts: TimestampState::new(
                self.secrets.timestamp_offset(flow),
                stamp.map_or(0, |stamp| stamp.value),
            ),
            retransmit_at: self.now.tick(),
            retransmits: 0,
            mss,
            mss_local: self.mss_to(flow.remote, config),
            window: segment.window,
            snd_wind_shift: agreed.snd_wind_shift,
            timestamps: stamp.is_some(),
            sack: agreed.sack,
            ecn: syn_cookie::feedback(agreed.ecn, segment, settings),
        };
        let env = &mut self.tcp_context.env(config, self.now);
        match half_open.on_segment(segment, env) {
            HalfOpenOutcome::Established(connection) => {
                self.counters.cookies_taken += 1;
                Some(self.establish(id, *flow, hash, None, connection))
            }
            _ => None,
        }
    }

    /// A slot for a connection whose handshake is complete, or will be, in its listener's queue; in place of the entry
    /// `half_open` of the SYN cache, if there is one.
    pub(crate) fn establish(
        &mut self,
        id: ListenerId,
        flow: Flow,
        hash: u64,
        half_open: Option<u32>,
        connection: Connection,
    ) -> u32 {
        let connection_is_established = connection.state() != State::SynReceived;
        let index = self.slots.insert(connection, flow);
        match half_open {
            Some(half_open) => self.flows.establish(hash, half_open, index),
            None => self.flows.insert_connection(&flow, hash, index),
        }
        self.counters.passive_opens += 1;
        if let Some(slot) = self.slots.at_mut(index)
            && let Some(listener) = self.listeners.at(id)
        {
            slot.config = listener.config;
            slot.listener = id.0;
            slot.flags.set(SlotFlags::UNACCEPTED);
            self.listeners.add_waiting(id, index);
        }
        self.reply_by_the_same_way(index);
        if connection_is_established {
            self.on_events(index, Events::ESTABLISHED);
        }
        index
    }
}
