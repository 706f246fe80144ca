//! Connections of which the SYN leaves with the first bytes that are written (RFC 7413 4.1), as Linux has it: where no cookie of the
//! server is known, connect(2) begins as always, and asks for one.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Options, SocketNumber};
use core::net::SocketAddr;

impl<L: SocketLink> Sockets<L> {
    /// Whether connect(2) is over, and nothing has been written since: the next bytes open the connection.
    pub fn is_deferred(&self, number: SocketNumber) -> bool {
        let socket = self.socket(number);
        socket.is_ok_and(|socket| socket.deferred.is_some())
    }

    pub(super) fn may_defer(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        options: &Options,
    ) -> bool {
        let each = options.listen.each;
        // Port 0 is refused at once.
        each.fast_open && target.port() != 0 && self.host.fast_open_room(target, source, each) > 0
    }

    /// Begins such a connection; gives the bytes that may go with its SYN.
    pub(super) fn open_deferred(&mut self, number: SocketNumber) -> Result<Option<usize>, Errno> {
        let Some(deferred) = self.socket_mut(number)?.deferred.take() else {
            return Ok(None);
        };
        let mut options = self.socket(number)?.options.clone();
        options.listen.each.fast_open = true;
        let (target, source) = (deferred.target, deferred.source);
        let each = options.listen.each;
        let room = self.host.fast_open_room(target, source, each);
        self.begin(number, deferred, &options)?;
        Ok(Some(room.into()))
    }

    /// Gives it up, if it is one: the socket is as one whose handshake is broken off.
    pub(super) fn give_up_deferred(&mut self, number: SocketNumber) -> Result<bool, Errno> {
        let socket = self.socket_mut(number)?;
        let was_deferred = socket.deferred.take().is_some();
        if was_deferred {
            socket.pending = Some(Errno::RESET);
            self.on_change(number, Readiness::ALL);
        }
        Ok(was_deferred)
    }
}
