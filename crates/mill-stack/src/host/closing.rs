//! How connections are left.

use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::{SocketError, SocketId};

impl<Q: SendQueue> Host<Q> {
    /// The application leaves: what is queued is still sent, then FIN; RST instead if bytes are unread. The identifier
    /// is stale afterwards.
    pub fn close(&mut self, socket: SocketId) {
        if !self.leave(socket) {
            return;
        }
        let Some(slot) = self.slots.at_mut(socket.index) else {
            return;
        };
        let env = &mut self.lending.env(slot.config, self.now);
        let reset = slot.connection.close(env);
        let flow = slot.flow;
        self.discard_unread(socket.index);
        if let Some(reset) = reset {
            self.answers.push_own(flow, reset);
            self.end(socket.index, false);
        } else {
            self.after_command(socket.index);
        }
    }

    /// RST, and forgotten.
    pub fn abort(&mut self, socket: SocketId) {
        if self.leave(socket) {
            self.reset(socket.index);
        }
    }

    /// Ends a connection with a reset that its owner did not ask for.
    pub(crate) fn fail(&mut self, index: u32, error: SocketError) {
        if let Some(slot) = self.slots.at_mut(index) {
            slot.error = slot.error.or(Some(error));
        }
        self.mark_ready(index);
        self.reset(index);
    }

    /// RST where the state has one, and the end.
    pub(crate) fn reset(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let flow = slot.flow;
        let env = &mut self.lending.env(slot.config, self.now);
        if let Some(reset) = slot.connection.abort(env) {
            self.answers.push_own(flow, reset);
        }
        self.end(index, false);
    }

    /// Makes the identifier stale; says whether there is still something for TCP to do.
    fn leave(&mut self, socket: SocketId) -> bool {
        let Some(slot) = self.slots.of_mut(socket) else {
            return false;
        };
        slot.flags.set(SlotFlags::ORPHAN);
        slot.flags.clear(SlotFlags::READY);
        slot.generation = slot.generation.wrapping_add(1);
        if slot.flags.has(SlotFlags::ENDED) {
            self.forget(socket.index);
            return false;
        }
        true
    }
}
