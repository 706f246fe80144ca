//! The stack's half of an engine: listening, accepting, connecting, its part of the turn.

use crate::bypass::StackOptions;
use crate::file_bytes::FileBytes;
use crate::listeners::{Entry, Listeners};
use crate::mapping::{EADDRNOTAVAIL, canonical, connect_error, listen_options, to_stack};
use crate::pace::Wait;
use crate::slot::Flags;
use crate::stack::Stack;
use crate::stream::StackStream;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::ops::RangeInclusive;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Events, ListenOptions, Park};
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_stack::config::Neighboring;
use mill_stack::host::Host;
use mill_stack::link::{Link, Service};
use mill_stack::queue::SendQueue;
use mill_stack::socket::{ListenError, ListenerId};
use mill_stack::wire::protocol::Protocol;

/// The stack, and what the engine has besides: listeners, which may be the inner engine's as well.
pub(crate) struct Stacked<L: Link, F: FileBytes> {
    pub(crate) stack: Rc<RefCell<Stack<L, F>>>,
    pub(crate) listeners: RefCell<Listeners>,
    /// Where the stack's listeners listen; at some places perhaps several of them.
    served: RefCell<Vec<(ListenerId, Service)>>,
    /// The kernel has the stack's addresses too: whatever listens there listens at both.
    shares_addresses: bool,
    /// Where connections are opened from, until the link knows.
    ports: Cell<Option<RangeInclusive<u16>>>,
    send_buffer_bytes: u32,
    /// The clocks when the civil one was read last.
    clocks: Cell<Option<(Instant, UnixTime)>>,
    /// The turn found nothing to do so far.
    is_idle: Cell<bool>,
}

impl<L: Link, F: FileBytes> Stacked<L, F> {
    pub(crate) fn new(options: StackOptions<L>, now: Instant) -> Self {
        let shares_addresses = options.host.neighbors == Neighboring::Kernel;
        let ports = options.host.ephemeral_ports.clone();
        let turn = (options.host.limits.burst_max as usize, options.polling);
        let host = Host::new(options.host, options.link.properties(), to_stack(now));
        let stack = Stack::new(host, options.link, turn, now);
        Self {
            stack: Rc::new(RefCell::new(stack)),
            listeners: RefCell::default(),
            served: RefCell::default(),
            shares_addresses,
            ports: Cell::new(Some(ports)),
            send_buffer_bytes: options.send_buffer_bytes.max(SEND_BUFFER_BYTES_MIN),
            clocks: Cell::default(),
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
                self.served.borrow_mut().push((id, service));
                stack.link.serve(service, true);
            }
        }
        Some(listener)
    }

    pub(crate) fn close_listener(&self, listener: ListenerId) {
        let mut stack = self.stack.borrow_mut();
        stack.host.close_listener(listener);
        let mut served = self.served.borrow_mut();
        let closed: Vec<Service> = served
            .extract_if(.., |(id, _)| *id == listener)
            .map(|(_, service)| service)
            .collect();
        for service in closed {
            if served.iter().all(|(_, other)| *other != service) {
                stack.link.serve(service, false);
            }
        }
    }

    pub(crate) fn send_buffer_of(&self, options: &ListenOptions) -> u32 {
        let asked = options.send_buffer_bytes;
        let asked = asked.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        asked.map_or(self.send_buffer_bytes, |bytes| {
            bytes.max(SEND_BUFFER_BYTES_MIN)
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
        let socket = {
            let mut stack = self.stack.borrow_mut();
            if let Some(ports) = self.ports.take() {
                stack.link.open_ports(ports);
            }
            let host = &mut stack.host;
            host.connect(remote, source, options.nodelay, token)
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
            self.send_buffer_bytes,
            flags,
        ))
    }

    pub(crate) fn wait(&self, park: Park, now: impl FnOnce() -> Instant) -> Wait {
        let park = if self.listeners.borrow().has_waiting() {
            Park::No
        } else {
            park
        };
        self.stack.borrow_mut().wait(park, now)
    }

    /// What the frames and timers of this turn changed.
    pub(crate) fn receive(&self, now: Instant, events: &mut Events) {
        let mut stack = self.stack.borrow_mut();
        stack.receive(now);
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

    /// The time of `receive`, and the civil time then; `read` reads the clocks.
    pub(crate) fn turn_clock(
        &self,
        read: impl FnOnce() -> (Instant, UnixTime),
    ) -> (Instant, UnixTime) {
        let now = self.stack.borrow().now();
        if let Some((then, civil)) = self.clocks.get()
            && now >= then
            && now.since(then) < CIVIL_TIME_AGE
        {
            return (now, civil.after(now.since(then)));
        }
        let (then, civil) = read();
        self.clocks.set(Some((then, civil)));
        (now, civil)
    }

    /// A turn without anything to do, of which one that spins makes millions, takes no time to speak of.
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

/// Where a listener listens: the wildcard of IPv6 may be that of IPv4 too.
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

/// Who waits to be accepted is reset while there is still a host that can say so.
impl<L: Link, F: FileBytes> Drop for Stacked<L, F> {
    fn drop(&mut self) {
        if let Ok(mut stack) = self.stack.try_borrow_mut() {
            for entry in self.listeners.borrow_mut().drain() {
                if let Some(listener) = entry.stack {
                    stack.host.close_listener(listener);
                }
            }
        }
    }
}

/// How old the civil time may be that a turn goes by: what the log's milliseconds don't show.
const CIVIL_TIME_AGE: Duration = Duration::from_millis(1);

/// Bytes: Linux's smallest send buffer (`SOCK_MIN_SNDBUF`). With less a writer would wait for the acknowledgement of each
/// segment, which its peer delays.
const SEND_BUFFER_BYTES_MIN: u32 = 4608;
