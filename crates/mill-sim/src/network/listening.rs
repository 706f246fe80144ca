//! Listening, connecting, accepting.

use super::Network;
use crate::agenda::{Event, Item};
use crate::endpoint::{Endpoint, EndpointId, Owner};
use crate::link::Link;
use crate::socket::{Listener, Socket};
use mill_runtime::address::Address;
use mill_runtime::engine::{Accept, Keepalive, ListenError, ListenOption, ListenOptions};
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

impl Network {
    /// Lets an engine listen; returns the listener and the options that this world lacks.
    pub(crate) fn listen(
        &mut self,
        engine: usize,
        options: &ListenOptions,
    ) -> Result<(usize, Vec<ListenOption>), ListenError> {
        let unsupported: Vec<_> = asked_for(options)
            .filter(|option| self.lacking_listen.contains(option))
            .collect();
        let mut options = options.clone();
        for lacking in &unsupported {
            match lacking {
                ListenOption::Deferred => options.deferred = false,
                ListenOption::ReceiveBuffer => options.receive_buffer_bytes = None,
                ListenOption::SendBuffer => options.send_buffer_bytes = None,
                // `bind` looks at Reuseport; nothing in this world depends on the others.
                _ => {}
            }
        }
        let socket = self.bind(engine, options, &unsupported)?;
        self.sockets[socket].listeners += 1;
        self.listeners.push(Listener {
            engine,
            socket,
            accepting: true,
            open: true,
        });
        Ok((self.listeners.len() - 1, unsupported))
    }

    /// The socket for an address: another engine's, or a new one.
    fn bind(
        &mut self,
        engine: usize,
        options: ListenOptions,
        unsupported: &[ListenOption],
    ) -> Result<usize, ListenError> {
        let in_use = ListenError {
            call: "bind()",
            code: EADDRINUSE,
        };
        let shares_port =
            options.share.is_some() && !unsupported.contains(&ListenOption::Reuseport);
        for (index, socket) in self.sockets.iter().enumerate() {
            if !socket.is_open() || socket.options.address != options.address {
                continue;
            }
            if socket.options.share == options.share {
                let is_own = self
                    .listeners
                    .iter()
                    .any(|other| other.open && other.socket == index && other.engine == engine);
                return if is_own { Err(in_use) } else { Ok(index) };
            }
            if !shares_port || socket.options.share.is_none() {
                return Err(in_use);
            }
        }
        self.sockets.push(Socket {
            options,
            waiting: VecDeque::new(),
            listeners: 0,
        });
        Ok(self.sockets.len() - 1)
    }

    /// Stops an engine's listening. With the socket's last listener go the connections that wait, by RST.
    pub(crate) fn close_listener(&mut self, index: usize) {
        let listener = &mut self.listeners[index];
        if !std::mem::take(&mut listener.open) {
            return;
        }
        let socket = &mut self.sockets[listener.socket];
        socket.listeners -= 1;
        if !socket.is_open() {
            for waiting in std::mem::take(&mut socket.waiting) {
                self.end(waiting).owner = Owner::Gone;
                self.reset(waiting);
            }
        }
    }

    /// The listeners of an engine at which connections wait to be accepted.
    pub(crate) fn acceptable(&self, engine: usize) -> impl Iterator<Item = usize> {
        let listeners = self.listeners.iter().enumerate();
        listeners.filter_map(move |(index, listener)| {
            let reports = listener.engine == engine && listener.open && listener.accepting;
            (reports && self.first_waiting(listener.socket).is_some()).then_some(index)
        })
    }

    /// Where in a socket's queue the first connection is that may be accepted.
    fn first_waiting(&self, socket: usize) -> Option<usize> {
        let socket = &self.sockets[socket];
        let deferred = socket.options.deferred;
        socket.waiting.iter().position(|waiting| {
            let end = &self.endpoints[waiting.0];
            let receiving = &end.receiving;
            !deferred || receiving.unread_len > 0 || receiving.finished || end.error.is_some()
        })
    }

    /// Takes the first waiting connection for a task.
    pub(crate) fn accept(&mut self, index: usize, task: TaskId) -> Accept<EndpointId> {
        let listener = &self.listeners[index];
        let (engine, socket) = (listener.engine, listener.socket);
        if !listener.open {
            return Accept::Empty;
        }
        let Some(position) = self.first_waiting(socket) else {
            return Accept::Empty;
        };
        let state = &mut self.engines[engine];
        if state.streams >= state.streams_max {
            return Accept::Exhausted(EMFILE);
        }
        let Some(id) = self.sockets[socket].waiting.remove(position) else {
            return Accept::Empty;
        };
        let end = self.end(id);
        if end.error.is_some() {
            end.owner = Owner::Gone;
            return Accept::Aborted;
        }
        end.owner = Owner::Task { engine, task };
        self.engines[engine].streams += 1;
        Accept::Stream(id)
    }

    /// Opens a connection at `start` for `owner`, from an address of its own unless `source` gives one; a source with
    /// port 0 gets a port of its own.
    pub(crate) fn connect(
        &mut self,
        target: &Address,
        source: Option<&Address>,
        link: Link,
        owner: Owner,
        start: Instant,
    ) -> EndpointId {
        let id = EndpointId(self.endpoints.len());
        let target = reachable(target);
        let own = own_address(&target, id.connection());
        let local = match (source, &own) {
            (Some(Address::Ip(source)), Address::Ip(own)) if source.port() == 0 => {
                SocketAddr::new(source.ip(), own.port()).into()
            }
            (Some(source), _) => source.clone(),
            (None, _) => own,
        };
        let mut connecting = Endpoint::new(local.clone(), target.clone(), link);
        connecting.owner = owner;
        self.endpoints.push(connecting);
        self.endpoints.push(Endpoint::new(target, local, link));
        self.agenda
            .enter(start + link.delay, Event::ConnectArrives(id));
        id
    }

    /// As [`Network::connect`], for a task of an engine.
    pub(crate) fn connect_task(
        &mut self,
        engine: usize,
        target: &Address,
        source: Option<&Address>,
        task: TaskId,
    ) -> Result<EndpointId, StreamError> {
        let state = &mut self.engines[engine];
        if state.streams >= state.streams_max {
            return Err(StreamError::Other(EMFILE));
        }
        state.streams += 1;
        let (link, now) = (self.link, self.now);
        Ok(self.connect(target, source, link, Owner::Task { engine, task }, now))
    }

    /// A request to connect has come to its target.
    pub(crate) fn on_connect_arrives(&mut self, id: EndpointId) {
        let (elapsed, target) = (self.elapsed(), self.end(id).peer.clone());
        let link = self.end(id).link;
        let answer_at = self.now + link.delay;
        let Some(socket) = self.find_socket(&target) else {
            let text = format_args!("connects to {target}: refused");
            self.ladder.note(elapsed, id.peer(), text);
            self.end(id.peer()).owner = Owner::Gone;
            self.agenda.enter(answer_at, Event::Refused(id));
            return;
        };
        self.ladder
            .note(elapsed, id.peer(), format_args!("connects to {target}"));
        let options = &self.sockets[socket].options;
        let (receive, send) = (options.receive_buffer_bytes, options.send_buffer_bytes);
        if let Some(bytes) = receive {
            self.end(id).sending.window = bytes as u64;
        }
        let accepting = self.end(id.peer());
        if let Some(bytes) = send {
            accepting.sending.window = bytes as u64;
        }
        accepting.established = true;
        self.sockets[socket].waiting.push_back(id.peer());
        self.agenda.enter(answer_at, Event::Established(id));
    }

    /// The socket that a connection comes to; one of those that share the port by chance. `None` refuses.
    fn find_socket(&mut self, target: &Address) -> Option<usize> {
        let fits = |socket: &Socket| socket.fit(target);
        let best = self.sockets.iter().filter_map(fits).max()?;
        let candidates: Vec<usize> = (0..self.sockets.len())
            .filter(|index| fits(&self.sockets[*index]) == Some(best))
            .collect();
        let index = match candidates.as_slice() {
            [only] => *only,
            several => several[usize::try_from(self.random.next()).unwrap_or(0) % several.len()],
        };
        (!self.sockets[index].is_full()).then_some(index)
    }

    pub(crate) fn on_established(&mut self, id: EndpointId) {
        let end = self.end(id);
        if matches!(end.owner, Owner::Gone) || end.error.is_some() {
            return;
        }
        end.established = true;
        self.flush(id);
        self.report(id);
    }

    pub(crate) fn on_refused(&mut self, id: EndpointId) {
        let elapsed = self.elapsed();
        self.ladder.note(elapsed, id, "refused");
        self.receive(id, Item::Reset);
        self.end(id).error = Some(StreamError::Refused);
    }
}

/// The optional features that the options ask for.
fn asked_for(options: &ListenOptions) -> impl Iterator<Item = ListenOption> {
    let asked = [
        (options.share.is_some(), ListenOption::Reuseport),
        (options.deferred, ListenOption::Deferred),
        (options.fastopen.is_some(), ListenOption::Fastopen),
        (
            options.receive_buffer_bytes.is_some(),
            ListenOption::ReceiveBuffer,
        ),
        (
            options.send_buffer_bytes.is_some(),
            ListenOption::SendBuffer,
        ),
        (
            options.keepalive != Keepalive::System,
            ListenOption::Keepalive,
        ),
        (options.ipv6only.is_some(), ListenOption::Ipv6only),
    ];
    asked
        .into_iter()
        .filter_map(|(asked, option)| asked.then_some(option))
}

/// A connection to the wildcard address goes to the loopback address.
fn reachable(target: &Address) -> Address {
    match target {
        Address::Ip(SocketAddr::V4(v4)) if v4.ip().is_unspecified() => {
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), v4.port()).into()
        }
        Address::Ip(SocketAddr::V6(v6)) if v6.ip().is_unspecified() => {
            SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), v6.port()).into()
        }
        other => other.clone(),
    }
}

/// An address that no other connection of the world has, from the ranges for documentation (RFC 5737, RFC 3849).
fn own_address(target: &Address, connection: usize) -> Address {
    let port = 10_000 + u16::try_from(connection % 50_000).unwrap_or(0);
    let host = u8::try_from(1 + connection / 50_000 % 250).unwrap_or(1);
    match target {
        Address::Ip(SocketAddr::V4(_)) => {
            SocketAddr::new(Ipv4Addr::new(198, 51, 100, host).into(), port).into()
        }
        Address::Ip(SocketAddr::V6(_)) => {
            let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host));
            SocketAddr::new(ip.into(), port).into()
        }
        Address::Unix(_) => Address::Unix(Rc::from([])),
    }
}

/// Linux: the address is in use.
const EADDRINUSE: i32 = 98;
/// Linux: the process has too many open files.
const EMFILE: i32 = 24;
