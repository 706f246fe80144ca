//! The stack's half of an engine: listening, accepting, connecting, its part of a turn.

use crate::bypass::{BypassLink, StackOptions};
use crate::file_bytes::FileBytes;
use crate::listeners::{Entry, Listeners};
use crate::mapping::{
    EADDRNOTAVAIL, canonical, clamp, connect_error, listen_options, opened_options, to_stack,
};
use crate::pace::Wait;
use crate::slot::Flags;
use crate::stack::{Stack, earlier};
use crate::stream::StackStream;
use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Events, ListenOptions, Park};
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use mill_stack::config::Neighboring;
use mill_stack::flow::Flow;
use mill_stack::host::Host;
use mill_stack::link::Service;
use mill_stack::queue::SendQueue;
use mill_stack::socket::{ListenError, ListenerId, SocketOptions};
use mill_wire::protocol::Protocol;

/// The stack, and the engine's listeners, which may be the inner engine's as well.
pub(crate) struct StackHalf<L: BypassLink, F: FileBytes> {
    pub(crate) stack: Rc<RefCell<Stack<L, F>>>,
    pub(crate) listeners: RefCell<Listeners>,
    /// Where the stack's listeners listen; several may share one address and port.
    served: RefCell<Vec<(ListenerId, Service)>>,
    /// Listeners that are about to be closed, since when, and where: the kernel or another process gets new connections to that
    /// address and port.
    finishing: RefCell<Vec<Finishing>>,
    /// Addresses and ports without listener that may have connections left; and when that was checked last.
    closing: RefCell<Vec<Service>>,
    looked_at: Cell<Instant>,
    /// The kernel has the stack's addresses too: a listener there listens at both.
    pub(crate) shares_addresses: bool,
    /// The link brings what is sent to the ports of outgoing connections.
    has_opened: Cell<bool>,
    send_buffer_bytes: u32,
    opened: SocketOptions,
    /// The turn has found no work so far.
    is_idle: Cell<bool>,
}

impl<L: BypassLink, F: FileBytes> StackHalf<L, F> {
    pub(crate) fn new(options: StackOptions<L>, now: Instant) -> Self {
        let shares_addresses = options.host.neighbors == Neighboring::Kernel;
        let turn = (options.host.limits.burst_max as usize, options.polling);
        let host = Host::new(options.host, options.link.properties(), to_stack(now));
        let stack = Stack::new(host, options.link, turn, now);
        Self {
            stack: Rc::new(RefCell::new(stack)),
            listeners: RefCell::default(),
            served: RefCell::default(),
            finishing: RefCell::default(),
            closing: RefCell::default(),
            looked_at: Cell::new(now),
            shares_addresses,
            has_opened: Cell::new(false),
            send_buffer_bytes: options.send_buffer_bytes.max(SEND_BUFFER_BYTES_MIN),
            opened: options.opened,
            is_idle: Cell::new(true),
        }
    }

    /// Whether only the stack listens at an address: the kernel does not know it.
    pub(crate) fn is_alone_at(&self, address: &Address) -> bool {
        match address {
            Address::Ip(ip) => {
                !self.shares_addresses && self.stack.borrow().host.is_own(canonical(*ip).ip())
            }
            Address::Unix(_) => false,
        }
    }

    /// Listens where the stack has a part in the address; `None` where it has none.
    pub(crate) fn listen(
        &self,
        options: &ListenOptions,
    ) -> Option<Result<ListenerId, ListenError>> {
        let Address::Ip(address) = options.address else {
            return None;
        };
        let mut stack = self.stack.borrow_mut();
        let address = canonical(address);
        if !address.ip().is_unspecified() && !stack.host.is_own(address.ip()) {
            return None;
        }
        let listen = listen_options(options);
        let listener = stack.host.listen(address, &listen);
        if let Ok(id) = listener {
            for service in services(&stack.host, id, listen.dual_stack) {
                self.serve(&mut stack, id, service);
            }
        }
        Some(listener)
    }

    /// No new handshakes begin at a listener, those under way may complete: the kernel or another process gets new connections.
    /// Returns whether no more are expected: frames that were on their way have arrived, and no handshake is under way, or only
    /// those of peers that do not continue.
    pub(crate) fn drain_listener(&self, listener: ListenerId) -> bool {
        let mut finishing = self.finishing.borrow_mut();
        let mut stack = self.stack.borrow_mut();
        let begun = finishing.iter().find(|one| one.listener == listener);
        let since = begun.map_or(stack.now(), |one| one.since);
        if begun.is_none() {
            // What the kernel does not get belongs to no listener from here on.
            let is_alone = !self.shares_addresses;
            stack.host.set_listener_draining(listener, is_alone);
            finishing.push(Finishing {
                listener,
                since,
                services: self.stop_serving(&mut stack, listener),
            });
        }
        let patience = match stack.host.half_open(listener) {
            0 if self.shares_addresses => FRAMES_TIMEOUT,
            0 => Duration::ZERO,
            _ => HANDSHAKE_TIMEOUT,
        };
        stack.now() >= since + patience
    }

    pub(crate) fn keep_listener(&self, listener: ListenerId) {
        let mut finishing = self.finishing.borrow_mut();
        let mut stack = self.stack.borrow_mut();
        stack.host.set_listener_draining(listener, false);
        for one in finishing.extract_if(.., |one| one.listener == listener) {
            for service in one.services {
                self.serve(&mut stack, listener, service);
            }
        }
    }

    pub(crate) fn close_listener(&self, listener: ListenerId) {
        let mut stack = self.stack.borrow_mut();
        stack.host.close_listener(listener);
        self.stop_serving(&mut stack, listener);
        let mut finishing = self.finishing.borrow_mut();
        finishing.retain(|one| one.listener != listener);
    }

    fn serve(&self, stack: &mut Stack<L, F>, listener: ListenerId, service: Service) {
        self.served.borrow_mut().push((listener, service));
        self.closing.borrow_mut().retain(|other| *other != service);
        stack.link.serve(service, true);
    }

    /// Has the link deliver no new connections of a listener, unless other listeners share its port; returns where
    /// that is.
    fn stop_serving(&self, stack: &mut Stack<L, F>, listener: ListenerId) -> Vec<Service> {
        let mut served = self.served.borrow_mut();
        let stopped: Vec<Service> = served
            .extract_if(.., |(id, _)| *id == listener)
            .map(|(_, service)| service)
            .collect();
        for service in &stopped {
            if served.iter().all(|(_, other)| other != service) {
                stack.link.serve(*service, false);
                self.closing.borrow_mut().push(*service);
            }
        }
        stopped
    }

    /// When to check next whether a listener can be closed.
    fn next_finish(&self, now: Instant) -> Option<Instant> {
        let finishing = self.finishing.borrow();
        let ends = finishing.iter().map(|one| {
            let first = one.since + FRAMES_TIMEOUT;
            if now < first {
                first
            } else {
                one.since + HANDSHAKE_TIMEOUT
            }
        });
        // A listener that cannot be closed later either waits for something else.
        ends.filter(|end| *end > now).min()
    }

    /// Has the link stop delivering segments for ports without connections; checks now and then.
    fn forget_closed(&self, stack: &mut Stack<L, F>, now: Instant) {
        let mut closing = self.closing.borrow_mut();
        if closing.is_empty() || now.since(self.looked_at.get()) < LOOK_INTERVAL {
            return;
        }
        self.looked_at.set(now);
        let connections = stack.host.connections();
        let ports: BTreeSet<u16> = connections.map(|status| status.flow.local_port).collect();
        for service in closing.extract_if(.., |service| !ports.contains(&service.address.port())) {
            stack.link.forget(service);
        }
    }

    /// The send buffer of a connection for which so much was asked.
    pub(crate) fn send_buffer_of(&self, asked: Option<usize>) -> u32 {
        asked.map_or(self.send_buffer_bytes, |bytes| {
            clamp(bytes).max(SEND_BUFFER_BYTES_MIN)
        })
    }

    pub(crate) fn accept(&self, entry: &mut Entry, task: TaskId) -> Option<StackStream<L, F>> {
        let listener = entry.stack?;
        let socket = {
            let host = &mut self.stack.borrow_mut().host;
            let socket = host.accept(listener, task.to_bits());
            entry.is_waiting = socket.is_some();
            socket?
        };
        let flags = Flags {
            is_mapped: entry.is_dual,
            ..Flags::default()
        };
        Some(StackStream::new(
            &self.stack,
            socket,
            entry.send_buffer_bytes,
            flags,
        ))
    }

    pub(crate) fn reaches(&self, target: IpAddr) -> bool {
        self.stack.borrow().host.reaches(target.to_canonical())
    }

    pub(crate) fn connect(
        &self,
        target: SocketAddr,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<StackStream<L, F>, StreamError> {
        let source = match &options.source {
            None => None,
            Some(Address::Ip(source)) => Some(canonical(*source)),
            Some(Address::Unix(_)) => return Err(StreamError::Other(EADDRNOTAVAIL)),
        };
        let (remote, token) = (canonical(target), task.to_bits());
        let opened = opened_options(self.opened, options);
        let socket = {
            let mut stack = self.stack.borrow_mut();
            if !self.has_opened.replace(true) {
                stack.link.open_ports();
            }
            let Stack { host, link, .. } = &mut *stack;
            // Where several links share a device, from a port whose replies come to this one.
            let steer = |flow: &Flow| link.brings(remote, flow.local_port);
            host.connect_with(remote, source, options.nodelay, opened, token, steer)
                .map_err(connect_error)?
        };
        let flags = Flags {
            connecting: true,
            is_mapped: remote.is_ipv4() && target.is_ipv6(),
            ..Flags::default()
        };
        Ok(StackStream::new(
            &self.stack,
            socket,
            self.send_buffer_of(options.send_buffer_bytes),
            flags,
        ))
    }

    pub(crate) fn wait(&self, park: Park, now: impl FnOnce() -> Instant) -> Wait {
        let park = if self.listeners.borrow().has_waiting() {
            Park::No
        } else {
            park
        };
        let mut stack = self.stack.borrow_mut();
        let park = earlier(park, self.next_finish(stack.now()));
        stack.wait(park, now)
    }

    /// What the frames and timers of this turn changed.
    pub(crate) fn receive(&self, now: Instant, clock: impl Fn() -> Instant, events: &mut Events) {
        let mut stack = self.stack.borrow_mut();
        stack.receive(now, clock);
        self.forget_closed(&mut stack, now);
        stack.report(&mut events.ready);
        let mut listeners = self.listeners.borrow_mut();
        for listener in stack.drain_acceptable() {
            listeners.note_waiting(listener);
        }
        listeners.report(&mut events.acceptable);
        let is_idle = events.ready.is_empty() && events.acceptable.is_empty();
        if !is_idle {
            stack.worked();
        }
        self.is_idle.set(is_idle && !events.mail);
    }

    /// A turn without work, of which one that spins makes millions, costs next to no time.
    pub(crate) fn settle(&self, now: impl FnOnce() -> Instant) {
        let mut stack = self.stack.borrow_mut();
        let now = if self.is_idle.get() {
            stack.now()
        } else {
            now()
        };
        stack.settle(now);
    }
}

/// A listener that is about to be closed.
struct Finishing {
    listener: ListenerId,
    since: Instant,
    services: Vec<Service>,
}

/// The addresses at which a listener listens: IPv6's wildcard may cover IPv4's.
fn services<Q: SendQueue>(
    host: &Host<Q>,
    listener: ListenerId,
    is_dual: bool,
) -> impl Iterator<Item = Service> + use<Q> {
    let address = host.listener_address(listener);
    let of_ipv4 = address
        .filter(|_| is_dual)
        .map(|address| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()));
    let protocol = Protocol::TCP;
    [address, of_ipv4]
        .into_iter()
        .flatten()
        .map(move |address| Service { address, protocol })
}

/// Connections that wait to be accepted are reset while there is still a host to send the RST.
impl<L: BypassLink, F: FileBytes> Drop for StackHalf<L, F> {
    fn drop(&mut self) {
        if let Ok(mut stack) = self.stack.try_borrow_mut() {
            for entry in self.listeners.borrow_mut().drain() {
                if let Some(listener) = entry.stack {
                    stack.host.close_listener(listener);
                }
            }
            for service in self.closing.borrow_mut().drain(..) {
                stack.link.forget(service);
            }
        }
    }
}

/// How long frames may be on their way that the link delivered before it was told to stop.
const FRAMES_TIMEOUT: Duration = Duration::from_millis(2);

/// How long handshakes that are under way may take when a listener is closed: the time until a lost first SYN-ACK is sent again.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(1200);

/// How often ports without listener are checked for connections left: after the last one ends, the kernel gets the
/// segments for that port at the next check. A check takes time for each connection.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes: Linux's smallest send buffer (`SOCK_MIN_SNDBUF`). With less a writer would wait for the acknowledgement of each
/// segment, which its peer delays.
const SEND_BUFFER_BYTES_MIN: u32 = 4608;

#[cfg(test)]
mod tests;
