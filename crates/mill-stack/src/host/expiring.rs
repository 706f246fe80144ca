//! Timers: of connections, of handshakes, of TIME-WAIT, of neighbours.

use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::listener::Listener;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::ListenerId;
use mill_tcp::time_wait::TimeWait;

impl<Q: SendQueue> Host<Q> {
    /// Does what is due, as far as a turn's share goes; says whether that was all of it.
    pub(crate) fn expire_all(&mut self) -> bool {
        let mut work = WORK_MAX;
        while let Some(index) = self.timers.expire(self.now, &mut work) {
            self.on_connection_timer(index);
        }
        let mut is_done = work > 0;
        let mut work = WORK_MAX;
        while let Some(index) = self.syn_cache.timers.expire(self.now, &mut work) {
            self.on_half_open_timer(index);
        }
        is_done &= work > 0;
        let mut work = WORK_MAX;
        while work > 0 && self.expire_time_wait() {
            work -= 1;
        }
        is_done &= work > 0;
        self.next_hops.neighbors.expire(self.now);
        self.wake_parked();
        self.expire_fragments();
        is_done
    }

    fn on_connection_timer(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let now = self.now.tick();
        // The entry may be older than the timer, which has moved on since.
        if slot
            .connection
            .next_timer()
            .is_some_and(|at| at.is_due(now))
        {
            let env = &mut self.tcp_context.env(slot.config, self.now);
            let events = slot.connection.on_timer(env);
            let is_reply = slot.flags.has(SlotFlags::REPLIES);
            if !events.is_empty() {
                self.on_events(index, events);
            }
            if is_reply {
                self.doubt_the_way(index);
            }
            self.want_transmit(index);
        }
        self.arm(index);
    }

    fn on_half_open_timer(&mut self, index: u32) {
        let Some(entry) = self.syn_cache.at_mut(index) else {
            return;
        };
        let (flow, at) = (entry.flow, entry.half_open.retransmit_at);
        // The peer has asked since, and the timer has moved on.
        if !at.is_due(self.now.tick()) {
            self.syn_cache.timers.arm(index, at);
            return;
        }
        let config = self
            .listeners
            .at(ListenerId(entry.listener))
            .map_or(0, |listener| listener.config);
        let env = &mut self.tcp_context.env(config, self.now);
        match entry.half_open.on_timer(env) {
            Some(syn_ack) => {
                let at = entry.half_open.retransmit_at;
                self.syn_cache.timers.arm(index, at);
                self.answer(flow, syn_ack);
            }
            None => {
                self.counters.failed_opens += 1;
                self.forget_half_open(index);
            }
        }
    }

    /// Forgets a handshake and its flow.
    pub(crate) fn forget_half_open(&mut self, index: u32) {
        let Some(entry) = self.syn_cache.remove(index) else {
            return;
        };
        let hash = entry.flow.table_hash(self.secrets.table);
        self.flows.remove(hash, Target::HalfOpen(index));
        self.count_half_open_out(ListenerId(entry.listener));
    }

    /// A handshake of this listener is over, one way or the other.
    pub(crate) fn count_half_open_out(&mut self, listener: ListenerId) {
        if let Some(Listener { half_open, .. }) = self.listeners.at_mut(listener) {
            debug_assert!(*half_open > 0);
            *half_open = half_open.saturating_sub(1);
        }
    }

    /// Forgets the oldest in TIME-WAIT if its time has come; says whether it had.
    fn expire_time_wait(&mut self) -> bool {
        if !self.time_wait.is_due(self.now.tick()) {
            return false;
        }
        let Some((number, entry)) = self.time_wait.pop_oldest() else {
            return false;
        };
        self.leave_time_wait(number, entry.flow, &entry.time_wait);
        true
    }

    /// An entry that was the oldest: its wait may have begun anew since it came, then it goes to the end.
    fn leave_time_wait(&mut self, number: u32, flow: Flow, time_wait: &TimeWait) {
        let hash = flow.table_hash(self.secrets.table);
        if time_wait.ends_at.is_due(self.now.tick()) {
            self.flows.remove(hash, Target::TimeWait(number));
            self.ports.on_vacant();
        } else {
            let new = self.time_wait.push(flow, *time_wait);
            self.flows
                .replace(hash, Target::TimeWait(number), Target::TimeWait(new));
        }
    }

    /// Forgets the oldest entries while there are as many as there may be, or while the places that later ones have left
    /// (flows that were opened anew) take as much memory again.
    pub(crate) fn make_room_in_time_wait(&mut self) {
        let count_max = self.limits.time_wait_max.max(1) as usize;
        while (self.time_wait.len() >= count_max || self.time_wait.places() >= 2 * count_max)
            && let Some((number, entry)) = self.time_wait.pop_oldest()
        {
            let hash = entry.flow.table_hash(self.secrets.table);
            self.flows.remove(hash, Target::TimeWait(number));
            self.ports.on_vacant();
            self.counters.time_waits_forgotten += 1;
        }
    }

    pub(crate) fn forget_time_wait(&mut self, number: u32, hash: u64) {
        self.time_wait.remove(number);
        self.flows.remove(hash, Target::TimeWait(number));
        self.ports.on_vacant();
    }
}

/// Entries of each kind that are looked at in one call: about a millisecond's work.
const WORK_MAX: u32 = 4096;
