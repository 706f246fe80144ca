//! Writing of applications.

use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::SocketId;

impl<Q: SendQueue> Host<Q> {
    /// The queue of what is to be sent, from `connect` or `accept` on; `None` once the connection has ended. After
    /// adding to it, call `wrote`.
    pub fn queue(&mut self, socket: SocketId) -> Option<&mut Q> {
        let slot = self.slots.of_mut(socket)?;
        if slot.flags.has(SlotFlags::ENDED) {
            return None;
        }
        if slot.queue.is_none() {
            slot.queue = Some(self.vacant_queues.take());
            // If nothing is added, the queue goes back with the next `transmit`.
            self.slots.want_transmit(socket.index);
        }
        self.slots.of_mut(socket)?.queue.as_deref_mut()
    }

    /// The queue, if there is something in it, or was a moment ago.
    pub fn queue_in_use(&self, socket: SocketId) -> Option<&Q> {
        self.slots.of(socket)?.queue.as_deref()
    }

    /// Something was added to the queue.
    pub fn wrote(&mut self, socket: SocketId) {
        if self.slots.of(socket).is_some() {
            self.slots.want_transmit(socket.index);
        }
    }

    /// What is in the queue now ends a message: what follows it will not share a segment with it, the first time or
    /// again (`MSG_EOR`). The end of a message with more behind it waits for nothing, as the end of the queue might.
    /// `wrote` is to be called as well.
    pub fn end_message(&mut self, socket: SocketId) {
        let Some(slot) = self.slots.of_mut(socket) else {
            return;
        };
        if slot.flags.has(SlotFlags::ENDED) {
            return;
        }
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        let env = &mut self.tcp_context.env(slot.config, self.now);
        slot.connection.end_message(queued, env);
    }

    /// Bytes of the queue that were not sent yet. An application that writes only while they are few
    /// (`TCP_NOTSENT_LOWAT`) can still decide what to send when there is room.
    pub fn not_sent(&self, socket: SocketId) -> u64 {
        let Some(slot) = self.slots.of(socket) else {
            return 0;
        };
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        queued.saturating_sub(slot.connection.in_flight().into())
    }

    /// Bytes at the front of the queue that were sent at least once.
    pub fn in_flight(&self, socket: SocketId) -> u64 {
        let Some(slot) = self.slots.of(socket) else {
            return 0;
        };
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        u64::from(slot.connection.in_flight()).min(queued)
    }

    /// Bytes that the peer has acknowledged in the connection's life.
    pub fn acked(&self, socket: SocketId) -> u64 {
        self.slots.of(socket).map_or(0, |slot| slot.acked)
    }

    /// FIN after what is queued; reading goes on.
    pub fn shutdown(&mut self, socket: SocketId) {
        if let Some(slot) = self.slots.of_mut(socket)
            && !slot.flags.has(SlotFlags::ENDED)
        {
            let env = &mut self.tcp_context.env(slot.config, self.now);
            slot.connection.shutdown(env);
            self.after_command(socket.index);
        }
    }

    /// Turning Nagle's algorithm off sends what waits, also where a cork holds it, as in Linux: programs use it to
    /// push.
    pub fn set_nodelay(&mut self, socket: SocketId, on: bool) {
        if let Some(slot) = self.slots.of_mut(socket) {
            slot.connection.set_nodelay(on);
            let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
            if on && queued > u64::from(slot.connection.in_flight()) {
                slot.connection.push();
            }
            self.slots.want_transmit(socket.index);
        }
    }

    /// The owner has nothing to say on this connection now: an acknowledgement that waits for that leaves
    /// ([`mill_tcp::config::Config::lazy_acks`]). Says whether one does.
    pub fn acknowledge_now(&mut self, socket: SocketId) -> bool {
        let Some(slot) = self.slots.of_mut(socket) else {
            return false;
        };
        let is_due = !slot.flags.has(SlotFlags::ENDED) && slot.connection.acknowledge_now();
        if is_due {
            self.slots.want_transmit(socket.index);
        }
        is_due
    }

    pub fn set_cork(&mut self, socket: SocketId, on: bool) {
        if let Some(slot) = self.slots.of_mut(socket) {
            slot.connection.set_cork(on);
            self.slots.want_transmit(socket.index);
        }
    }

    /// What a command may have changed: it may be over, it may have to send, its timer may be earlier.
    pub(crate) fn after_command(&mut self, index: u32) {
        let is_closed = self
            .slots
            .at(index)
            .is_some_and(|slot| slot.connection.state() == mill_tcp::state::State::Closed);
        if is_closed {
            self.end(index, false);
        } else {
            self.slots.want_transmit(index);
            self.arm(index);
        }
    }
}
