//! Shutting down and closing.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Kind, Socket, SocketNumber};
use mill_stack::host::status::ConnectionStatus;
use mill_stack::socket::SocketId;
use mill_tcp::state::State;

/// Which half of a connection shutdown(2) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Reading,
    Writing,
    Both,
}

/// A connection that was closed with `SO_LINGER`.
#[derive(Clone, Copy, Debug)]
pub struct Lingering {
    id: SocketId,
    /// How long close(2) waits at most.
    pub seconds: u32,
}

impl<L: SocketLink> Sockets<L> {
    pub fn shutdown(&mut self, number: SocketNumber, half: Half) -> Result<(), Errno> {
        if self.give_up_deferred(number)? {
            return Ok(());
        }
        let kind = self.socket(number)?.kind;
        if let Kind::Stream(id) = kind
            && self.is_opening(id)
        {
            // As Linux: the handshake is given up (`inet_shutdown`).
            self.become_idle(number, id);
            self.socket_mut(number)?.pending = Some(Errno::RESET);
            return Ok(());
        }
        let has_shaken = matches!(kind, Kind::Stream(id)
            if self.host.is_established(id) && self.host.readable(id).error.is_none());
        let was_opening = matches!(kind, Kind::Stream(_)) && !has_shaken;
        let socket = self.socket_mut(number)?;
        socket.is_disconnecting |= was_opening && !socket.was_connected;
        socket.was_connected |= has_shaken;
        socket.reads_no_more |= half != Half::Writing;
        socket.writes_no_more |= half != Half::Reading;
        self.on_change(number, Readiness::ALL);
        let id = self.socket(number)?.stream()?;
        if self.is_closed(id) {
            return Err(Errno::NOT_CONNECTED);
        }
        if half != Half::Reading {
            self.socket_mut(number)?.has_finished = true;
            self.host.set_cork(id, false);
            self.host.shutdown(id);
        }
        Ok(())
    }

    /// What the program has shut down before the connection: Linux remembers that it did, though the call failed, and sends no FIN.
    pub fn shut_before(&mut self, number: SocketNumber, half: Half) {
        if let Ok(socket) = self.socket_mut(number) {
            socket.reads_no_more |= half != Half::Writing;
            socket.writes_no_more |= half != Half::Reading;
        }
    }

    /// connect(2) to no address: the connection is reset, and the socket connects anew.
    pub fn dissolve(&mut self, number: SocketNumber) -> Result<(), Errno> {
        if self.give_up_deferred(number)? {
            return Ok(());
        }
        if let Kind::Stream(id) = self.socket(number)?.kind {
            let was_open = !self.is_closed(id);
            self.become_idle(number, id);
            self.socket_mut(number)?.pending = was_open.then_some(Errno::RESET);
        }
        Ok(())
    }

    /// Whether a connection is over: both ends have finished, or it has failed.
    pub(super) fn is_closed(&self, id: SocketId) -> bool {
        let state = self.host.state(id);
        self.host.readable(id).error.is_some() || state.is_none_or(|state| state == State::Closed)
    }

    /// The same of a socket that is or was connected.
    pub fn is_over(&self, number: SocketNumber) -> bool {
        let id = self.socket(number).and_then(|socket| socket.stream());
        id.is_ok_and(|id| self.is_closed(id))
    }

    /// Bytes have come to a socket that both reads and writes no more: Linux resets the connection (RFC 9293 3.6.1).
    pub(super) fn refuse_bytes(&mut self, number: SocketNumber, id: SocketId) {
        self.become_idle(number, id);
        if let Ok(socket) = self.socket_mut(number) {
            socket.pending = Some(Errno::RESET);
            socket.was_connected = true;
            (socket.reads_no_more, socket.writes_no_more) = (true, true);
        }
    }

    /// The handshake is over, and the socket as one that was never connected.
    pub(super) fn become_idle(&mut self, number: SocketNumber, id: SocketId) {
        let port = self.host.local(id).map_or(0, |local| local.port());
        self.host.abort(id);
        let Ok(socket) = self.socket_mut(number) else {
            return;
        };
        socket.kind = Kind::Idle;
        socket.former_port = port;
        (socket.was_connected, socket.is_disconnecting) = (false, false);
        socket.pending = None;
        socket.was_error_told = false;
        (socket.reads_no_more, socket.writes_no_more) = (false, false);
        socket.has_finished = false;
        self.on_change(number, Readiness::ALL);
    }

    /// One more descriptor refers to the socket (dup(2)).
    pub fn duplicate(&mut self, number: SocketNumber) -> Result<(), Errno> {
        self.socket_mut(number)?.references += 1;
        Ok(())
    }

    /// How many descriptors refer to it.
    pub fn references(&self, number: SocketNumber) -> u32 {
        self.socket(number).map_or(0, |socket| socket.references)
    }

    /// close(2) of one descriptor. With the last one the connection is closed, what was written is still sent; RST instead
    /// where bytes are unread, or `SO_LINGER` says so. Gives what the caller has to wait for, if `SO_LINGER` says that: also one
    /// whose calls do not wait otherwise, as in Linux (`tcp_close`).
    pub fn close(&mut self, number: SocketNumber) -> Option<Lingering> {
        let socket = self.let_go(number)?;
        match socket.kind {
            Kind::Listener(id) => {
                self.host.close_listener(id);
                self.stop_serving(id);
            }
            Kind::Idle => {}
            Kind::Stream(id) if socket.options.linger == Some(0) => self.host.abort(id),
            Kind::Stream(id) => {
                if socket.options.cork || socket.is_held {
                    self.host.set_cork(id, false);
                }
                self.host.close(id);
                let seconds = socket.options.linger?;
                return Some(Lingering { id, seconds });
            }
        }
        None
    }

    /// Whether the peer of a closed connection has not acknowledged all that it was sent, the end included.
    pub fn is_lingering(&self, closed: Lingering) -> bool {
        let state = self.host.state_of_closed(closed.id);
        state.is_some_and(|state| !matches!(state, State::FinWait2 | State::Closed))
    }

    /// One descriptor less; the socket, which is gone, if it was the last one. Until then sets watch it as they were told, also by
    /// descriptors that are closed, as in Linux.
    pub(super) fn let_go(&mut self, number: SocketNumber) -> Option<Socket> {
        let socket = self.socket_mut(number).ok()?;
        socket.references -= 1;
        if socket.references > 0 {
            return None;
        }
        let socket = self.sockets.remove(number)?;
        if socket.was_accepted {
            self.accepted -= 1;
            // Before its peer hears of it, and connects anew.
            self.host.tell_load(self.accepted);
        }
        self.end_watches(&socket.watches);
        self.listeners.retain(|(_, other)| *other != number);
        Some(socket)
    }

    /// Whether connections that programs have closed still have something to send to peers that answer.
    pub fn has_unsent(&self) -> bool {
        self.has_more
            || self.has_answers
            || self.host.connections().any(|status| is_under_way(&status))
    }

    /// The same with those whose peers do not answer, until TCP gives them up (`orphan-retries`).
    pub fn has_orphans(&self) -> bool {
        let mut connections = self.host.connections();
        self.has_more || self.has_answers || connections.any(|status| is_unfinished_orphan(&status))
    }
}

fn is_under_way(status: &ConnectionStatus) -> bool {
    let is_gone = status.info.backoff >= BACKOFF_OF_THE_GONE && status.info.snd_wnd > 0;
    !is_gone && is_unfinished_orphan(status)
}

fn is_unfinished_orphan(status: &ConnectionStatus) -> bool {
    let is_finishing = matches!(
        status.info.state,
        State::FinWait1 | State::Closing | State::LastAck
    );
    status.is_orphan && (status.queued > 0 || is_finishing)
}

/// After so many retransmissions in a row a peer is not waited for.
const BACKOFF_OF_THE_GONE: u8 = 4;
