//! Calls on sockets. Those that may block give `None` while they would.

use super::World;
use super::descriptors::{Descriptor, Kind};
use mill_sockets::errno::Errno;
use mill_stack::socket::{ListenOptions, Readable};
use mill_tcp::state::State;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How `shutdown` says which half.
const SHUT_RD: i32 = 0;
const SHUT_RDWR: i32 = 2;

/// What `poll` asks and tells.
pub(crate) const POLLIN: i16 = 1;
pub(crate) const POLLOUT: i16 = 4;
const POLLERR: i16 = 8;
const POLLHUP: i16 = 0x10;
const POLLRDHUP: i16 = 0x2000;

/// A port if a program listens without having bound one.
const PORT: u16 = 8080;

/// As a socket of IPv6 tells it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V6(ip.to_ipv6_mapped()), address.port()),
        IpAddr::V6(_) => address,
    }
}

impl World {
    pub(crate) fn socket(&mut self, is_ipv6: bool, waits: bool) -> i32 {
        self.descriptors.add(Descriptor {
            waits,
            ..Descriptor::new(Kind::Fresh, is_ipv6)
        })
    }

    pub(crate) fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        self.descriptors.find(fd)?.bound = Some(address);
        Ok(())
    }

    pub(crate) fn listen(&mut self, fd: i32, backlog: i32) -> Result<(), Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let unspecified = if descriptor.is_ipv6 {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        let address = descriptor
            .bound
            .unwrap_or(SocketAddr::new(unspecified, PORT));
        let mut options = ListenOptions {
            backlog: u32::try_from(backlog).unwrap_or(0),
            ..descriptor.options.clone()
        };
        self.refresh();
        self.add_fast_open(&mut options);
        let id = self.host().listen(address, &options)?;
        self.descriptors.find(fd)?.kind = Kind::Listener(id);
        Ok(())
    }

    pub(crate) fn accept(&mut self, fd: i32) -> Result<Option<(i32, SocketAddr)>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let Kind::Listener(listener) = descriptor.kind else {
            return Err(Errno::INVALID);
        };
        let (is_ipv6, options) = (descriptor.is_ipv6, descriptor.options.clone());
        let Some(id) = self.host().accept(listener, 0) else {
            return Ok(None);
        };
        let peer = self.host().peer(id).ok_or(Errno::RESET)?;
        let peer = if is_ipv6 { mapped(peer) } else { peer };
        let number = self.descriptors.add(Descriptor {
            options,
            ..Descriptor::new(Kind::Stream(id), is_ipv6)
        });
        Ok(Some((number, peer)))
    }

    /// Begins to connect, or says how that went.
    pub(crate) fn connect(&mut self, fd: i32, target: SocketAddr) -> Result<Option<()>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let waits = descriptor.waits;
        let source = descriptor.bound;
        let (nodelay, cork) = (descriptor.options.nodelay, descriptor.cork);
        let each = descriptor.options.each;
        match descriptor.kind {
            Kind::Listener(_) | Kind::Deferred(_) => Err(Errno::IS_CONNECTED),
            Kind::Fresh => {
                let each = if descriptor.connects_fast {
                    self.fast_open_options(each)
                } else {
                    each
                };
                if self.host().fast_open_room(target, source, each) > 0 {
                    self.descriptors.find(fd)?.kind = Kind::Deferred(target);
                    return Ok(Some(()));
                }
                let id = self
                    .host()
                    .connect_with(target, source, nodelay, each, 0, |_| true)?;
                self.host().set_cork(id, cork);
                self.descriptors.find(fd)?.kind = Kind::Stream(id);
                self.turn();
                if waits {
                    Ok(None)
                } else {
                    Err(Errno::IN_PROGRESS)
                }
            }
            Kind::Stream(id) => {
                if self.host().is_established(id) {
                    return Ok(Some(()));
                }
                match self.host().readable(id).error {
                    Some(error) => Err(error.into()),
                    None if waits => Ok(None),
                    None => Err(Errno::ALREADY),
                }
            }
        }
    }

    /// Reads into `into`; `is_peek` leaves the bytes where they are.
    pub(crate) fn read(
        &mut self,
        fd: i32,
        into: &mut [u8],
        is_peek: bool,
    ) -> Result<Option<usize>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let id = descriptor.stream()?;
        let reads_no_more = descriptor.reads_no_more;
        let state = self.host().readable(id);
        if state.unread == 0 {
            if let Some(error) = self.error_of(fd, &state)? {
                return Err(error);
            }
            let is_over = state.finished || reads_no_more || state.error.is_some();
            return Ok(is_over.then_some(0));
        }
        let host = self.host.as_mut().ok_or(Errno::NOT_CONNECTED)?;
        let read = host.read(id, &mut self.wire, |bytes| {
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            (if is_peek { 0 } else { count }, count)
        });
        self.turn();
        Ok(Some(read))
    }

    /// The error of a connection, the first time it is asked for.
    pub(super) fn error_of(&mut self, fd: i32, state: &Readable) -> Result<Option<Errno>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let Some(error) = state.error.filter(|_| !descriptor.was_error_told) else {
            return Ok(None);
        };
        descriptor.was_error_told = true;
        Ok(Some(error.into()))
    }

    /// Queues what there is room for. `has_more` is `MSG_MORE`: a small segment waits for what follows; `ends_message`
    /// is `MSG_EOR`.
    pub(crate) fn write(
        &mut self,
        fd: i32,
        bytes: &[u8],
        has_more: bool,
        ends_message: bool,
    ) -> Result<Option<usize>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let id = descriptor.stream()?;
        let (cork, room_max) = (descriptor.cork, descriptor.send_buffer_bytes);
        let not_sent_max = descriptor.not_sent_max;
        let is_over = descriptor.writes_no_more;
        let state = self.host().readable(id);
        if let Some(error) = self.error_of(fd, &state)? {
            return Err(error);
        }
        if is_over || state.error.is_some() {
            return Err(Errno::BROKEN_PIPE);
        }
        let host = self.host();
        if host
            .info(id)
            .is_some_and(|info| info.state == State::SynSent)
        {
            return Ok(None);
        }
        let not_sent = host.not_sent(id);
        let queue = host.queue(id).ok_or(Errno::BROKEN_PIPE)?;
        let held = mill_stack::queue::SendQueue::len(queue);
        let mut room = usize::try_from(room_max.saturating_sub(held)).unwrap_or(usize::MAX);
        if not_sent_max.is_some_and(|max| not_sent >= max) {
            room = 0;
        }
        if room == 0 && !bytes.is_empty() {
            return Ok(None);
        }
        let count = bytes.len().min(room);
        queue.push(&bytes[..count]);
        host.set_cork(id, cork || has_more);
        if ends_message && count == bytes.len() {
            host.end_message(id);
        }
        host.wrote(id);
        self.turn();
        Ok(Some(count))
    }

    pub(crate) fn shutdown(&mut self, fd: i32, how: i32) -> Result<(), Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let id = descriptor.stream()?;
        descriptor.reads_no_more |= how == SHUT_RD || how == SHUT_RDWR;
        if how != SHUT_RD {
            descriptor.writes_no_more = true;
            self.host().shutdown(id);
            self.turn();
        }
        Ok(())
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let descriptor = self.descriptors.remove(fd)?;
        match descriptor.kind {
            Kind::Fresh | Kind::Deferred(_) => {}
            Kind::Listener(id) => self.host().close_listener(id),
            Kind::Stream(id) if descriptor.aborts => self.host().abort(id),
            Kind::Stream(id) => {
                self.host().set_cork(id, false);
                self.host().close(id);
            }
        }
        self.turn();
        Ok(())
    }

    /// Which of `events` are there.
    pub(crate) fn poll(&mut self, fd: i32, events: i16) -> Result<i16, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let (room_max, is_over) = (descriptor.send_buffer_bytes, descriptor.reads_no_more);
        let not_sent_max = descriptor.not_sent_max;
        let id = match descriptor.kind {
            Kind::Stream(id) => id,
            Kind::Listener(id) => {
                let host = self.host();
                let mut acceptable = Vec::new();
                host.take_acceptable(&mut acceptable);
                return Ok(if acceptable.contains(&id) {
                    events & POLLIN
                } else {
                    0
                });
            }
            Kind::Fresh => return Ok(POLLOUT | POLLHUP),
            Kind::Deferred(_) => return Ok(events & POLLOUT),
        };
        let host = self.host();
        let state = host.readable(id);
        let not_sent = host.not_sent(id);
        let is_writable = host.is_established(id)
            && not_sent_max.is_none_or(|max| not_sent < max)
            && host
                .queue(id)
                .is_some_and(|queue| mill_stack::queue::SendQueue::len(queue) < room_max);
        let ends = state.finished || is_over || state.error.is_some();
        let mut found = 0;
        found |= if state.unread > 0 || ends { POLLIN } else { 0 };
        found |= if is_writable || state.error.is_some() {
            POLLOUT
        } else {
            0
        };
        found |= if ends { POLLRDHUP } else { 0 };
        found &= events;
        if state.error.is_some() {
            found |= POLLERR | POLLHUP;
        }
        Ok(found)
    }

    /// `O_NONBLOCK` as it is.
    pub(crate) fn waits(&mut self, fd: i32) -> Result<bool, Errno> {
        Ok(self.descriptors.find(fd)?.waits)
    }

    pub(crate) fn set_waits(&mut self, fd: i32, waits: bool) -> Result<(), Errno> {
        self.descriptors.find(fd)?.waits = waits;
        Ok(())
    }

    /// Bytes that wait: to be read (`FIONREAD`), or sent and acknowledged (`TIOCOUTQ`).
    pub(crate) fn waiting(&mut self, fd: i32, to_send: bool) -> Result<u64, Errno> {
        let id = self.descriptors.find(fd)?.stream()?;
        let host = self.host();
        if to_send {
            let queue = host.queue(id);
            return Ok(queue.map_or(0, |queue| mill_stack::queue::SendQueue::len(queue)));
        }
        Ok(host.readable(id).unread as u64)
    }
}
