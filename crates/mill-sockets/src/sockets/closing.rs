//! Shutting down and closing.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Kind, Socket, SocketNumber};
use mill_stack::host::status::ConnectionStatus;
use mill_tcp::state::State;

/// Which half of a connection shutdown(2) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Reading,
    Writing,
    Both,
}

impl<L: SocketLink> Sockets<L> {
    pub fn shutdown(&mut self, number: SocketNumber, half: Half) -> Result<(), Errno> {
        let id = self.socket(number)?.stream()?;
        if self.host.readable(id).error.is_some() {
            return Err(Errno::NOT_CONNECTED);
        }
        let socket = self.socket_mut(number)?;
        socket.reads_no_more |= half != Half::Writing;
        if half != Half::Reading {
            socket.writes_no_more = true;
            self.host.set_cork(id, false);
            self.host.shutdown(id);
        }
        self.on_change(number, Readiness::ALL);
        Ok(())
    }

    /// One more descriptor refers to the socket (dup(2)).
    pub fn duplicate(&mut self, number: SocketNumber) -> Result<(), Errno> {
        self.socket_mut(number)?.references += 1;
        Ok(())
    }

    /// close(2) of one descriptor. With the last one the connection is closed, what was written is still sent; RST instead
    /// where bytes are unread, or `SO_LINGER` says so.
    pub fn close(&mut self, number: SocketNumber, descriptor: i32) {
        let Some(socket) = self.let_go(number, descriptor) else {
            return;
        };
        match socket.kind {
            Kind::Listener(id) => {
                self.host.close_listener(id);
                self.stop_serving(id);
            }
            Kind::Stream(id) if socket.options.linger == Some(0) => self.host.abort(id),
            Kind::Stream(id) => {
                if socket.options.cork || socket.is_held {
                    self.host.set_cork(id, false);
                }
                self.host.close(id);
            }
        }
    }

    /// One descriptor less; the socket, which is gone, if it was the last one.
    pub(super) fn let_go(&mut self, number: SocketNumber, descriptor: i32) -> Option<Socket> {
        self.leave_sets(number, descriptor);
        let socket = self.socket_mut(number).ok()?;
        socket.references -= 1;
        if socket.references > 0 {
            return None;
        }
        let socket = self.sockets.remove(number)?;
        for watch in &socket.watches {
            if let Some(set) = self.sets.get_mut(watch.set) {
                set.remove(watch.entry);
            }
        }
        self.listeners.retain(|(_, other)| *other != number);
        Some(socket)
    }

    /// Whether connections that programs have closed still have something to send to peers that answer.
    pub fn has_unsent(&self) -> bool {
        self.has_more || self.has_answers || self.host.connections().any(|status| is_under_way(&status))
    }
}

fn is_under_way(status: &ConnectionStatus) -> bool {
    let is_gone = status.info.backoff >= BACKOFF_OF_THE_GONE && status.info.snd_wnd > 0;
    let is_finishing = matches!(
        status.info.state,
        State::FinWait1 | State::Closing | State::LastAck
    );
    status.is_orphan && !is_gone && (status.queued > 0 || is_finishing)
}

/// After so many retransmissions in a row a peer is not waited for.
const BACKOFF_OF_THE_GONE: u8 = 4;
