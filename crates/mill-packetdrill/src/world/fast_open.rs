//! Fast Open as `tcp_fastopen`, `MSG_FASTOPEN` and `TCP_FASTOPEN_CONNECT` have it.

use super::World;
use super::descriptors::Kind;
use super::settings::{
    FAST_OPEN_CLIENT, FAST_OPEN_CLIENT_WITHOUT_COOKIE, FAST_OPEN_EVERY_LISTENER, FAST_OPEN_SERVER,
    FAST_OPEN_SERVER_WITHOUT_COOKIE,
};
use mill_sockets::errno::Errno;
use mill_stack::socket::{ListenOptions, SocketOptions};
use std::net::SocketAddr;

impl World {
    /// What listeners have because of `tcp_fastopen`.
    pub(super) fn add_fast_open(&mut self, options: &mut ListenOptions) {
        let bits = self.settings.fast_open;
        let has = |bit| bits & bit != 0;
        if !has(FAST_OPEN_SERVER) {
            options.fast_open = None;
        } else if has(FAST_OPEN_EVERY_LISTENER) {
            options.fast_open = options.fast_open.or(Some(options.backlog.max(1)));
        }
        options.fast_open_without_cookie = has(FAST_OPEN_SERVER_WITHOUT_COOKIE);
    }

    pub(crate) fn may_open_fast(&self) -> bool {
        self.settings.fast_open & FAST_OPEN_CLIENT != 0
    }

    /// The options of a socket that opens so.
    pub(super) fn fast_open_options(&self, options: SocketOptions) -> SocketOptions {
        SocketOptions {
            fast_open: true,
            fast_open_without_cookie: self.settings.fast_open & FAST_OPEN_CLIENT_WITHOUT_COOKIE
                != 0,
            ..options
        }
    }

    /// Where a write on this socket has to connect to first (`TCP_FASTOPEN_CONNECT`).
    pub(crate) fn deferred_target(&mut self, fd: i32) -> Result<Option<SocketAddr>, Errno> {
        match self.descriptors.find(fd)?.kind {
            Kind::Deferred(target) => Ok(Some(target)),
            Kind::Fresh | Kind::Listener(_) | Kind::Stream(_) => Ok(None),
        }
    }

    /// Opens with the first of these bytes; says how many of them the SYN carries.
    pub(crate) fn open_fast(
        &mut self,
        fd: i32,
        target: SocketAddr,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        self.refresh();
        if !self.may_open_fast() {
            return Err(Errno::NOT_SUPPORTED);
        }
        let descriptor = self.descriptors.find(fd)?;
        let source = descriptor.bound;
        let (nodelay, each) = (descriptor.options.nodelay, descriptor.options.each);
        let kind = descriptor.kind;
        match kind {
            Kind::Fresh | Kind::Deferred(_) => {}
            Kind::Stream(id) if !self.host().is_established(id) => return Err(Errno::ALREADY),
            Kind::Stream(_) | Kind::Listener(_) => return Err(Errno::IS_CONNECTED),
        }
        let each = self.fast_open_options(each);
        let room = self.host().fast_open_room(target, source, each);
        let count = bytes.len().min(usize::from(room));
        let host = self.host();
        let id = host.connect_with(target, source, nodelay, each, 0, |_| true)?;
        if let Some(queue) = host.queue(id) {
            queue.push(&bytes[..count]);
            host.wrote(id);
        }
        self.descriptors.find(fd)?.kind = Kind::Stream(id);
        self.turn();
        Ok(count)
    }

    /// Whether there is nothing to open any more.
    pub(crate) fn is_open(&mut self, fd: i32) -> Result<bool, Errno> {
        let kind = self.descriptors.find(fd)?.kind;
        Ok(matches!(kind, Kind::Stream(id) if self.host().is_established(id)))
    }

    /// Whether the handshake is complete; fails as it did.
    pub(crate) fn is_connected(&mut self, fd: i32) -> Result<Option<()>, Errno> {
        let id = self.descriptors.find(fd)?.stream()?;
        let state = self.host().readable(id);
        if let Some(error) = self.error_of(fd, &state)? {
            return Err(error);
        }
        Ok(self.host().is_established(id).then_some(()))
    }
}
