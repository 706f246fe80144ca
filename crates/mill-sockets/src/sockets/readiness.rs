//! What is ready, by the rules of `tcp_poll` in Linux (net/ipv4/tcp.c).

use super::{SocketLink, Sockets};
use crate::readiness::Readiness;
use crate::socket::{Kind, Socket, SocketNumber};
use mill_stack::queue::SendQueue;
use mill_stack::socket::SocketId;

impl<L: SocketLink> Sockets<L> {
    /// What poll(2) says of a socket, whether it is asked for or not. As in Linux, a look that finds no room makes room be told.
    pub fn readiness(&self, number: SocketNumber) -> Readiness {
        let found = self.found(number);
        if let Some(socket) = self.sockets.get(number)
            && matches!(socket.kind, Kind::Listener(_))
        {
            socket.note_look();
            return found;
        }
        if !found.has_any(Readiness::OUT)
            && let Some(socket) = self.sockets.get(number)
        {
            socket.lacks_space.set(true);
        }
        found
    }

    /// What is ready, for the stack's own use.
    pub(super) fn found(&self, number: SocketNumber) -> Readiness {
        match self.sockets.get(number) {
            None => Readiness::NONE,
            Some(socket) => match socket.kind {
                Kind::Listener(id) => {
                    let waits = self.host.waiting(id) > 0;
                    Readiness::ARRIVALS.when(waits)
                }
                Kind::Stream(id) => self.of_stream(socket, id),
                Kind::Idle if socket.deferred.is_some() => Readiness::ROOM,
                Kind::Idle => of_idle(socket),
            },
        }
    }

    fn of_stream(&self, socket: &Socket, id: SocketId) -> Readiness {
        let state = self.host.readable(id);
        if self.is_opening(id) && state.error.is_none() {
            // It may have been shut down before.
            let (ends, is_over) = (socket.reads_no_more, socket.writes_no_more);
            return (Readiness::ARRIVALS | Readiness::RDHUP).when(ends)
                | Readiness::HUP.when(ends && is_over);
        }
        let is_broken = state.error.is_some();
        let ends = state.finished || socket.reads_no_more || is_broken;
        let writes_no_more = socket.writes_no_more || is_broken;
        let has_bytes = state.unread >= socket.options.readable_min as usize;
        let is_error = (is_broken && !socket.was_error_told) || socket.pending.is_some();
        Readiness::ARRIVALS.when((state.unread > 0 && has_bytes) || ends)
            | Readiness::ROOM.when(writes_no_more || self.has_write_space(socket, id))
            | Readiness::RDHUP.when(ends)
            | Readiness::HUP.when(ends && writes_no_more)
            | Readiness::ERR.when(is_error)
    }

    /// A third of the buffer is free: so writers are not woken for each segment.
    pub(super) fn has_write_space(&self, socket: &Socket, id: SocketId) -> bool {
        let not_sent_max = socket.options.not_sent_max;
        if not_sent_max.is_some_and(|max| self.host.not_sent(id) >= max) {
            return false;
        }
        let held = self.host.queue_in_use(id).map_or(0, SendQueue::len);
        held + held / 2 <= u64::from(socket.options.send_buffer_bytes)
    }
}

/// A socket that is not connected can be written to, in order to be told so.
fn of_idle(socket: &Socket) -> Readiness {
    let reads_no_more = Readiness::ARRIVALS | Readiness::RDHUP;
    Readiness::ROOM
        | Readiness::HUP
        | reads_no_more.when(socket.reads_no_more)
        | Readiness::ERR.when(socket.pending.is_some())
}
