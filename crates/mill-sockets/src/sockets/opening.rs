//! Listening, accepting, connecting.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::socket::{Deferred, Kind, Options, Socket, SocketNumber};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use mill_stack::flow::Flow;
use mill_stack::link::Service;
use mill_stack::process_group::ProcessGroup;
use mill_stack::socket::{ListenerId, SocketId};
use mill_wire::protocol::Protocol;

impl<L: SocketLink> Sockets<L> {
    /// listen(2), at an address that is [`Self::has`]: new connections come here from now on.
    pub fn listen(&mut self, address: SocketAddr, options: Options) -> Result<SocketNumber, Errno> {
        let id = self.host.listen(address, &options.listen)?;
        let is_dual = options.listen.dual_stack;
        let number = self
            .sockets
            .insert(Socket::new(Kind::Listener(id), options));
        self.listeners.push((id, number));
        self.serve(id, is_dual);
        self.settle_unclaimed(|_| false);
        Ok(number)
    }

    /// Other processes are on the same device. To be called before this one listens.
    pub fn set_process_group(&mut self, processes: Box<dyn ProcessGroup>) {
        self.host.set_process_group(processes);
    }

    /// SYNs to ports without listener are not refused at once from now on, but when [`Self::settle_unclaimed`] says so: for stacks
    /// of which the kernel does not have the addresses. Where it has them it answers what no stack listens for.
    pub const fn keep_unclaimed_syns(&mut self) {
        self.host.keep_unclaimed_syns();
    }

    /// Whether SYNs have come to ports without listener of which it is not known whether a program is about to listen there.
    pub fn has_unclaimed(&self) -> bool {
        self.host.has_unclaimed()
    }

    /// SYNs that have come to ports without listener wait a second where a program is about to listen, and are refused otherwise.
    pub fn settle_unclaimed(&mut self, is_expected: impl FnMut(SocketAddr) -> bool) {
        if self.host.settle_unclaimed(&mut self.link, is_expected) {
            self.has_answers = true;
        }
    }

    /// listen(2) once more, with another backlog.
    pub fn set_backlog(&mut self, number: SocketNumber, backlog: u32) {
        if let Ok(Kind::Listener(id)) = self.socket(number).map(|socket| socket.kind) {
            self.host.set_listener_backlog(id, backlog);
        }
        if let Ok(socket) = self.socket_mut(number) {
            socket.options.listen.backlog = backlog;
        }
    }

    /// accept(2): a connection that waits, if there is one.
    pub fn accept(&mut self, number: SocketNumber) -> Result<Option<SocketNumber>, Errno> {
        let socket = self.socket(number)?;
        let Kind::Listener(listener) = socket.kind else {
            return Err(Errno::INVALID);
        };
        socket.note_look();
        let token = self.sockets.next_number().to_bits();
        let Some(id) = self.host.accept(listener, token) else {
            return Ok(None);
        };
        let options = Options {
            waits: true,
            ..self.socket(number)?.options.clone()
        };
        let is_corked = options.cork;
        let accepted = Socket {
            was_accepted: true,
            was_connected: true,
            ..Socket::new(Kind::Stream(id), options)
        };
        let accepted = self.sockets.insert(accepted);
        self.accepted += 1;
        if self.host.waiting(listener) == 0 {
            // Programs that ask before they accept do not accept until there is none, after which the host tells of the next.
            let none = self.host.accept(listener, token);
            debug_assert!(none.is_none(), "none waits");
        }
        if is_corked {
            self.host.set_cork(id, true);
        }
        Ok(Some(accepted))
    }

    /// connect(2): begins to open a connection; [`Self::connected`] says how it goes.
    pub fn connect(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        options: Options,
    ) -> Result<SocketNumber, Errno> {
        if self.may_defer(target, source, &options) {
            let mut socket = Socket::new(Kind::Idle, options);
            socket.deferred = Some(Deferred { target, source });
            return Ok(self.sockets.insert(socket));
        }
        let token = self.sockets.next_number().to_bits();
        let id = self.open(target, source, &options, token)?;
        Ok(self.sockets.insert(Socket::new(Kind::Stream(id), options)))
    }

    /// Whether connect(2) begins anew.
    pub fn is_idle(&self, number: SocketNumber) -> bool {
        self.socket(number).is_ok_and(|socket| {
            socket.kind == Kind::Idle && !socket.was_connected && socket.deferred.is_none()
        })
    }

    /// connect(2) of a socket that [`Self::is_idle`].
    pub fn connect_anew(
        &mut self,
        number: SocketNumber,
        target: SocketAddr,
        source: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let mut options = self.socket(number)?.options.clone();
        options.listen.each.fast_open = options.is_fast_open;
        if self.may_defer(target, source, &options) {
            self.socket_mut(number)?.deferred = Some(Deferred { target, source });
            return Ok(());
        }
        self.begin(number, Deferred { target, source }, &options)
    }

    pub(super) fn begin(
        &mut self,
        number: SocketNumber,
        Deferred { target, source }: Deferred,
        options: &Options,
    ) -> Result<(), Errno> {
        let id = self.open(target, source, options, number.to_bits())?;
        let socket = self.socket_mut(number)?;
        socket.kind = Kind::Stream(id);
        socket.was_connected = false;
        (socket.pending, socket.known_unread, socket.known_state) = (None, 0, [false; 3]);
        Ok(())
    }

    fn open(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        options: &Options,
        token: u64,
    ) -> Result<SocketId, Errno> {
        self.open_ports();
        let bound = source.filter(|source| source.port() != 0);
        if let Some(address) = bound {
            self.bring_answers(address);
        }
        if target.port() == 0 {
            // No service has it (RFC 6335 6).
            return Err(Errno::REFUSED);
        }
        let remote = SocketAddr::new(target.ip().to_canonical(), target.port());
        let link = &self.link;
        // Where several links share a device, from a port whose replies come to this one.
        let steer = |flow: &Flow| bound.is_some() || link.brings(remote, flow.local_port);
        let listen = &options.listen;
        let (nodelay, each) = (listen.nodelay, listen.each);
        let id = self
            .host
            .connect_with(remote, source, nodelay, each, token, steer)?;
        if options.cork {
            self.host.set_cork(id, true);
        }
        Ok(id)
    }

    /// connect(2) once more: `None` while the handshake goes on. It succeeds once, then the socket is connected already.
    pub fn connected(&mut self, number: SocketNumber) -> Result<Option<()>, Errno> {
        let socket = self.socket(number)?;
        if socket.was_connected {
            return Err(Errno::IS_CONNECTED);
        }
        if socket.deferred.is_some() {
            return Err(Errno::IS_CONNECTED);
        }
        if socket.is_disconnecting {
            return Err(Errno::INVALID);
        }
        let id = socket.stream()?;
        if self.host.readable(id).error.is_some() {
            let told = self.take_error(number)?;
            self.become_idle(number, id);
            return Err(told.unwrap_or(Errno::CONNECTION_ABORTED));
        }
        if !self.host.is_established(id) {
            return Ok(None);
        }
        self.socket_mut(number)?.was_connected = true;
        Ok(Some(()))
    }

    /// Has the link bring what is sent to the ports of outgoing connections, from the first one on.
    fn open_ports(&mut self) {
        if !std::mem::replace(&mut self.has_opened, true) {
            self.link.open_ports();
        }
    }

    /// Has the link bring what is sent to a port that a program has chosen, but no new connections, until no connection has it.
    fn bring_answers(&mut self, address: SocketAddr) {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let service = Service {
            address,
            protocol: Protocol::TCP,
        };
        if self.served.iter().all(|(_, other)| *other != service) {
            self.link.serve(service, true);
            self.link.serve(service, false);
            self.closing.push(service);
        }
    }

    /// Has the link bring frames for a listener.
    fn serve(&mut self, listener: ListenerId, is_dual: bool) {
        let Some(address) = self.host.listener_address(listener) else {
            return;
        };
        // IPv6's wildcard may cover IPv4's.
        let of_ipv4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        let is_both = is_dual && address.is_ipv6() && address.ip().is_unspecified();
        for address in [Some(address), is_both.then_some(of_ipv4)]
            .into_iter()
            .flatten()
        {
            let service = Service {
                address,
                protocol: Protocol::TCP,
            };
            self.served.push((listener, service));
            self.closing.retain(|other| *other != service);
            self.link.serve(service, true);
        }
    }

    /// Lets other processes have the device for what a listener serves, unless this program has another one there.
    pub(super) fn retire(&mut self, listener: ListenerId) {
        let others = |service: &Service| {
            let mut others = self.served.iter();
            others.any(|(other, it)| {
                *other != listener && it == service && !self.succession.has(*other)
            })
        };
        let served = self.served.iter().filter(|(id, _)| *id == listener);
        let retired: Vec<Service> = served
            .map(|(_, service)| *service)
            .filter(|it| !others(it))
            .collect();
        for service in retired {
            self.link.retire(service);
        }
    }

    /// Has the link bring no new connections of a listener, unless other listeners share its port.
    pub(super) fn stop_serving(&mut self, listener: ListenerId) {
        let stopped: Vec<_> = self
            .served
            .extract_if(.., |(id, _)| *id == listener)
            .collect();
        for (_, service) in stopped {
            if self.served.iter().all(|(_, other)| *other != service) {
                self.link.serve(service, false);
                self.closing.push(service);
            }
        }
    }
}
