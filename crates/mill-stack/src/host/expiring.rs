//! Timers: of connections, of handshakes, of TIME-WAIT, of neighbours.

use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::ListenerId;

impl<Q: SendQueue> Host<Q> {
    /// Does what is due, as far as a turn's share goes; says whether that was all of it.
    pub(crate) fn expire_all(&mut self) -> bool {
        let mut work = WORK_MAX;
        while let Some(index) = self.timers.expire(self.now, &mut work) {
            self.on_connection_timer(index);
        }
        let mut is_done = work > 0;
        let mut work = WORK_MAX;
        while let Some(index) = self.flows.half_open_timers().expire(self.now, &mut work) {
            self.on_half_open_timer(index);
        }
        is_done &= work > 0;
        let mut work = WORK_MAX;
        while work > 0 && self.flows.expire_time_wait(self.now.tick()) {
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
            self.slots.want_transmit(index);
        }
        self.arm(index);
    }

    fn on_half_open_timer(&mut self, index: u32) {
        let Some(entry) = self.flows.half_open_mut(index) else {
            return;
        };
        let (flow, at) = (entry.flow, entry.half_open.retransmit_at);
        // The peer has asked since, and the timer has moved on.
        if !at.is_due(self.now.tick()) {
            self.flows.half_open_timers().arm(index, at);
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
                self.flows.half_open_timers().arm(index, at);
                self.answer(flow, syn_ack);
            }
            None => {
                self.counters.failed_opens += 1;
                self.forget_half_open(index);
            }
        }
    }

    /// Forgets a handshake.
    pub(crate) fn forget_half_open(&mut self, index: u32) {
        if let Some(entry) = self.flows.remove_half_open(index) {
            self.count_half_open_out(ListenerId(entry.listener));
        }
    }

    /// A handshake of this listener is over, one way or the other.
    pub(crate) fn count_half_open_out(&mut self, listener: ListenerId) {
        if let Some(listener) = self.listeners.at_mut(listener) {
            listener.on_half_open_over();
        }
    }
}

/// Entries of each kind that are looked at in one call: about a millisecond's work.
const WORK_MAX: u32 = 4096;
