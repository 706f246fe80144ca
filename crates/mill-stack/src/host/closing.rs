//! Closing connections.

use crate::flow::Flow;
use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::{SocketError, SocketId};
use mill_tcp::segment::SegmentOut;
use mill_tcp::state::State;

impl<Q: SendQueue> Host<Q> {
    /// The application closes the connection: queued data is still sent, then FIN; RST instead if bytes are unread.
    /// The identifier is stale afterwards.
    pub fn close(&mut self, socket: SocketId) {
        if !self.leave(socket) {
            return;
        }
        let Some(slot) = self.slots.at_mut(socket.index) else {
            return;
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        let reset = slot.connection.close(env);
        let flow = slot.flow;
        self.discard_unread(socket.index);
        if let Some(reset) = reset {
            self.send_own_reset(flow, reset);
            self.end(socket.index, false);
        } else {
            self.after_command(socket.index);
        }
    }

    /// The state of a connection that the application has closed, by the identifier that it had; `None` once it is over.
    pub fn state_of_closed(&self, socket: SocketId) -> Option<State> {
        // It has become another generation when it was left.
        let generation = socket.generation.wrapping_add(1);
        let slot = self.slots.at(socket.index)?;
        let is_same = slot.generation == generation && self.is_orphan(socket.index);
        is_same.then(|| slot.connection.state())
    }

    /// Sends RST, and removes the connection.
    pub fn abort(&mut self, socket: SocketId) {
        if self.leave(socket) {
            self.reset(socket.index);
        }
    }

    /// Ends connections that the application has closed and whose peers have not acknowledged or finished yet, with
    /// RST where the state has one: the process that owns them is about to end. Begins with slot `from`, and ends so
    /// many that a device has room for their frames; returns the slot to go on with.
    pub fn abort_orphans(&mut self, from: u32) -> Option<u32> {
        let mut left = ORPHANS_AT_ONCE;
        for index in from..self.slots.places() {
            if self.is_orphan(index) {
                self.reset(index);
                left -= 1;
            }
            if left == 0 {
                return Some(index + 1);
            }
        }
        None
    }

    /// Ends all of them without RST, since the link's peer is gone.
    pub(crate) fn forget_orphans(&mut self) {
        for index in 0..self.slots.places() {
            if self.is_orphan(index)
                && let Some(slot) = self.slots.at_mut(index)
            {
                let env = &mut self.tcp_context.env(slot.config, self.now);
                slot.connection.forget(env);
                self.end(index, false);
            }
        }
    }

    /// How many connections the application has closed that are not over yet, and segments of others' that wait for the
    /// device.
    pub fn unfinished(&self) -> usize {
        let all = self.slots.iter();
        let orphans = all.filter(|(_, slot)| slot.flags.has(SlotFlags::ORPHAN));
        orphans.count() + self.answers.len()
    }

    fn is_orphan(&self, index: u32) -> bool {
        self.slots.at(index).is_some_and(|slot| {
            let flags = slot.flags;
            flags.has(SlotFlags::IN_USE) && flags.has(SlotFlags::ORPHAN)
        })
    }

    /// Ends a connection with a reset that its owner did not request.
    pub(crate) fn fail(&mut self, index: u32, error: SocketError) {
        if let Some(slot) = self.slots.at_mut(index) {
            slot.error = slot.error.or(Some(error));
        }
        self.slots.mark_ready(index);
        self.reset(index);
    }

    /// RST where the state has one, and the end.
    pub(crate) fn reset(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let flow = slot.flow;
        let env = &mut self.tcp_context.env(slot.config, self.now);
        if let Some(reset) = slot.connection.abort(env) {
            self.send_own_reset(flow, reset);
        }
        self.end(index, false);
    }

    /// Sends the reset that ends a connection of ours. It is not limited as answers to unknown flows are, nor are the
    /// answers to segments that the peer sends before it arrives.
    pub(crate) fn send_own_reset(&mut self, flow: Flow, reset: SegmentOut) {
        let hash = self.flows.hash(&flow);
        self.recent_resets.note(hash, self.now.tick());
        self.answers.push_own(flow, reset);
    }

    /// Makes the identifier stale; returns whether TCP still has work.
    fn leave(&mut self, socket: SocketId) -> bool {
        let Some(slot) = self.slots.of_mut(socket) else {
            return false;
        };
        slot.abandon();
        if slot.flags.has(SlotFlags::ENDED) {
            self.forget(socket.index);
            return false;
        }
        true
    }
}

/// Connections that are reset at once: as many frames as a device usually takes.
const ORPHANS_AT_ONCE: u32 = 512;
