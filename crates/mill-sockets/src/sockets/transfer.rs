//! Reading and writing.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Kind, SocketNumber};
use mill_stack::queue::{ByteQueue, SendQueue};
use mill_stack::socket::{SocketError, SocketId};
use mill_tcp::state::State;

impl<L: SocketLink> Sockets<L> {
    /// Lends the unread bytes to `take`, which returns how many of them it consumed, and a result: recv(2). `None` while there
    /// are none; at the end of the stream `take` gets an empty slice.
    pub fn read<R>(
        &mut self,
        number: SocketNumber,
        take: impl FnOnce(&mut [u8]) -> (usize, R),
    ) -> Result<Option<R>, Errno> {
        let socket = self.socket(number)?;
        let (kind, reads_no_more) = (socket.kind, socket.reads_no_more);
        let is_deferred = socket.deferred.is_some();
        let Kind::Stream(id) = kind else {
            return match self.take_error(number)? {
                Some(error) => Err(error),
                None if is_deferred => Ok(None),
                None if reads_no_more => Ok(Some(take(&mut []).1)),
                None => Err(Errno::NOT_CONNECTED),
            };
        };
        let state = self.host.readable(id);
        if state.unread == 0 {
            if state.finished {
                // As Linux, which tells the end before an error (`SOCK_DONE`).
                return Ok(Some(take(&mut []).1));
            }
            if let Some(error) = self.take_error(number)? {
                return Err(error);
            }
            if !self.host.is_established(id) && state.error.is_none() && !reads_no_more {
                return Ok(None);
            }
            let is_over = reads_no_more || state.error.is_some();
            return Ok(is_over.then(|| take(&mut []).1));
        }
        let result = self.host.read(id, &mut self.link, take);
        let left = self.host.readable(id).unread;
        self.socket_mut(number)?.known_unread = left;
        Ok(Some(result))
    }

    /// Unread bytes (`FIONREAD`).
    pub fn unread(&self, number: SocketNumber) -> Result<usize, Errno> {
        match self.socket(number)?.kind {
            Kind::Stream(id) => Ok(self.host.readable(id).unread),
            Kind::Listener(_) | Kind::Idle => Ok(0),
        }
    }

    /// Bytes that the peer has not acknowledged, FIN among them, and SYN where that failed (`SIOCOUTQ`).
    pub fn unacknowledged(&self, number: SocketNumber) -> Result<u64, Errno> {
        let Kind::Stream(id) = self.socket(number)?.kind else {
            return Ok(0);
        };
        let bytes = self.host.queue_in_use(id).map_or(0, SendQueue::len);
        let state = self.host.state(id);
        let is_finishing = matches!(
            state,
            Some(State::FinWait1 | State::Closing | State::LastAck)
        );
        let has_failed = !self.host.is_established(id) && self.host.readable(id).error.is_some();
        Ok(bytes + u64::from(is_finishing) + u64::from(has_failed))
    }

    /// Has `fill` append to what is sent, as many bytes as it is told if it has them, and returns how many these were: send(2).
    /// `has_more` is `MSG_MORE`. `None` while there is no room. A broken connection is `EPIPE`.
    pub fn write(
        &mut self,
        number: SocketNumber,
        has_more: bool,
        fill: impl FnOnce(&mut ByteQueue, usize) -> usize,
    ) -> Result<Option<usize>, Errno> {
        if let Some(error) = self.take_error(number)? {
            return Err(error);
        }
        let of_syn = self.open_deferred(number)?;
        let socket = self.socket(number)?;
        let is_over = socket.writes_no_more;
        let is_corked = socket.options.cork;
        let Kind::Stream(id) = socket.kind else {
            return Err(Errno::BROKEN_PIPE);
        };
        if self.host.readable(id).error.is_some() {
            return Err(Errno::BROKEN_PIPE);
        }
        if of_syn.is_none() && !self.host.is_established(id) && self.is_opening(id) {
            return Ok(None);
        }
        if is_over {
            return Err(Errno::BROKEN_PIPE);
        }
        let room = self.room(number)?.min(of_syn.unwrap_or(usize::MAX));
        if room == 0 {
            self.socket(number)?.lacks_space.set(true);
            return Ok(None);
        }
        let queue = self.host.queue(id).ok_or(Errno::BROKEN_PIPE)?;
        let count = fill(queue, room);
        if has_more || is_corked {
            self.host.set_cork(id, true);
        } else if self.is_held(number) {
            self.host.set_cork(id, false);
        }
        let socket = self.socket_mut(number)?;
        socket.is_held = has_more;
        if count == room {
            // There may have been more.
            socket.lacks_space.set(true);
        }
        self.host.wrote(id);
        Ok(Some(count))
    }

    /// Whether a call that writes would neither wait nor fail.
    pub fn is_writable(&self, number: SocketNumber) -> bool {
        let Ok(socket) = self.socket(number) else {
            return false;
        };
        let is_open = socket.pending.is_none() && !socket.writes_no_more;
        let id = socket.stream().ok().filter(|_| is_open);
        id.is_some_and(|id| !self.is_opening(id) && !self.is_closed(id))
            && self.room(number).is_ok_and(|room| room > 0)
    }

    /// Whether an error is to be told.
    pub fn has_error(&self, number: SocketNumber) -> bool {
        self.found(number).has_any(Readiness::ERR)
    }

    /// Keeps an error for the next call.
    pub fn keep_error(&mut self, number: SocketNumber, error: Errno) {
        if let Ok(socket) = self.socket_mut(number) {
            socket.pending = Some(error);
        }
    }

    /// Bytes that a writer may add.
    pub(super) fn room(&self, number: SocketNumber) -> Result<usize, Errno> {
        let socket = self.socket(number)?;
        let id = socket.stream()?;
        let not_sent_max = socket.options.not_sent_max;
        if not_sent_max.is_some_and(|max| self.host.not_sent(id) >= max) {
            return Ok(0);
        }
        let held = self.host.queue_in_use(id).map_or(0, SendQueue::len);
        let room = u64::from(socket.options.send_buffer_bytes).saturating_sub(held);
        Ok(usize::try_from(room).unwrap_or(usize::MAX))
    }

    fn is_held(&self, number: SocketNumber) -> bool {
        self.socket(number).is_ok_and(|socket| socket.is_held)
    }

    pub(super) fn is_opening(&self, id: SocketId) -> bool {
        matches!(
            self.host.state(id),
            Some(State::SynSent | State::SynReceived)
        )
    }

    /// The error of a connection, the first time it is asked for.
    pub fn take_error(&mut self, number: SocketNumber) -> Result<Option<Errno>, Errno> {
        let socket = self.socket_mut(number)?;
        if let Some(error) = socket.pending.take() {
            return Ok(Some(error));
        }
        let Kind::Stream(id) = socket.kind else {
            return Ok(None);
        };
        let Some(error) = self.host.readable(id).error else {
            return Ok(None);
        };
        let has_ended = self.host.readable(id).finished;
        let socket = self.socket_mut(number)?;
        let was_told = core::mem::replace(&mut socket.was_error_told, true);
        // A reset in CLOSE-WAIT answers what was written too late (`tcp_reset` in Linux).
        let is_late = error == SocketError::Reset && has_ended && !socket.has_finished;
        let errno = if is_late {
            Errno::BROKEN_PIPE
        } else {
            error.into()
        };
        Ok((!was_told).then_some(errno))
    }
}
