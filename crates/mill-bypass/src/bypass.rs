//! The engine: its turn, listening, connecting.

use crate::file_bytes::FileBytes;
use crate::listeners::{Entry, Listeners};
use crate::mapping::{
    EADDRNOTAVAIL, canonical, connect_error, lacking, listen_error, listen_options, to_stack,
};
use crate::slot::Flags;
use crate::stack::Stack;
use crate::stream::{BypassStream, StackStream};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use mill_runtime::address::Address;
use mill_runtime::engine::{
    Accept, ConnectOptions, Engine, Events, ListenError, ListenOptions, ListenerId, Listening, Park,
};
use mill_runtime::files::Files;
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Instant, UnixTime};
use mill_stack::config::HostConfig;
use mill_stack::host::Host;
use mill_stack::link::Link;

/// What the stack of an engine is made with.
#[derive(Clone, Debug)]
pub struct StackOptions<L> {
    pub link: L,
    pub host: HostConfig,
    /// Bytes of one stream that count as taken by the transport before they are acknowledged, where the listener does
    /// not say otherwise ([`ListenOptions::send_buffer_bytes`]): the memory that a stream's writer fills before it has to
    /// wait, and the window that it can fill.
    pub send_buffer_bytes: u32,
}

impl<L> StackOptions<L> {
    pub const fn new(link: L, host: HostConfig) -> Self {
        Self {
            link,
            host,
            send_buffer_bytes: SEND_BUFFER_BYTES,
        }
    }
}

/// A worker's connections: those over the link by a stack of our own, all others by the inner engine. Clones are
/// handles on the same engine.
///
/// A listener at a wildcard address listens at both; at an address of the host, at the stack; at any other, at the
/// inner engine. Connections are opened by the stack where one of its routes leads to the target over the link.
///
/// The inner engine's `poll` has to end when frames have come to the link, and to end at once while some are there.
pub struct BypassEngine<L: Link, I: Engine>
where
    FileOf<I>: FileBytes,
{
    inner: I,
    /// `None` without a link: everything is the inner engine's then.
    stacked: Option<Rc<Stacked<L, FileOf<I>>>>,
}

/// The files of an engine.
pub type FileOf<I> = <<I as Engine>::Files as Files>::File;

struct Stacked<L: Link, F: FileBytes> {
    stack: Rc<RefCell<Stack<L, F>>>,
    listeners: RefCell<Listeners>,
    send_buffer_bytes: u32,
}

impl<L: Link, I: Engine> BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    pub fn new(inner: I, stack: Option<StackOptions<L>>) -> Self {
        let stacked = stack.map(|options| {
            let now = inner.now();
            let burst_max = options.host.limits.burst_max as usize;
            let host = Host::new(options.host, options.link.properties(), to_stack(now));
            Rc::new(Stacked {
                stack: Rc::new(RefCell::new(Stack::new(host, options.link, burst_max, now))),
                listeners: RefCell::default(),
                send_buffer_bytes: options.send_buffer_bytes.max(SEND_BUFFER_BYTES_MIN),
            })
        });
        Self { inner, stacked }
    }

    /// The engine of all that does not go over the link.
    pub const fn inner(&self) -> &I {
        &self.inner
    }

    /// How many streams the stack has; 0 without one.
    pub fn stack_streams(&self) -> usize {
        let stacked = self.stacked.as_ref();
        stacked.map_or(0, |stacked| stacked.stack.borrow().slots.count())
    }
}

impl<L: Link + 'static, I: Engine> Engine for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    type Stream = BypassStream<L, I>;
    type Files = I::Files;

    fn files(&self) -> &I::Files {
        self.inner.files()
    }

    fn clock(&self) -> (Instant, UnixTime) {
        self.inner.clock()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn listen(&self, options: &ListenOptions) -> Result<Listening, ListenError> {
        let Some(stacked) = &self.stacked else {
            return self.inner.listen(options);
        };
        let mut unsupported = Vec::new();
        let inner = if stacked.is_alone_at(&options.address) {
            None
        } else {
            let listening = self.inner.listen(options)?;
            unsupported = listening.unsupported;
            Some(listening.id)
        };
        let stack = match stacked.listen(options) {
            Some(Ok(id)) => {
                unsupported.extend(lacking(options).filter(|option| !unsupported.contains(option)));
                Some(id)
            }
            Some(Err(error)) => {
                if let Some(inner) = inner {
                    self.inner.close_listener(inner);
                }
                return Err(listen_error(error));
            }
            None => None,
        };
        let entry = Entry {
            inner,
            stack,
            send_buffer_bytes: stacked.send_buffer_of(options),
            is_dual: listen_options(options).dual_stack,
            accepting: false,
            is_waiting: false,
            stack_first: true,
        };
        let id = stacked.listeners.borrow_mut().insert(entry);
        Ok(Listening { id, unsupported })
    }

    fn close_listener(&self, listener: ListenerId) {
        let Some(stacked) = &self.stacked else {
            return self.inner.close_listener(listener);
        };
        let entry = stacked.listeners.borrow_mut().remove(listener);
        let Some(entry) = entry else { return };
        if let Some(inner) = entry.inner {
            self.inner.close_listener(inner);
        }
        if let Some(id) = entry.stack {
            stacked.stack.borrow_mut().host.close_listener(id);
        }
    }

    fn set_accepting(&self, listener: ListenerId, accepting: bool) {
        let Some(stacked) = &self.stacked else {
            return self.inner.set_accepting(listener, accepting);
        };
        let mut listeners = stacked.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return;
        };
        entry.accepting = accepting;
        if let Some(inner) = entry.inner {
            self.inner.set_accepting(inner, accepting);
        }
    }

    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<BypassStream<L, I>> {
        let Some(stacked) = &self.stacked else {
            return self.accept_inner(listener, task);
        };
        let mut listeners = stacked.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return Accept::Empty;
        };
        entry.stack_first = !entry.stack_first;
        let stack_first = entry.stack_first;
        if stack_first && let Some(stream) = stacked.accept(entry, task) {
            return Accept::Stream(BypassStream::of_stack(stream));
        }
        if let Some(inner) = entry.inner {
            match self.accept_inner(inner, task) {
                Accept::Empty => {}
                found => return found,
            }
        }
        if !stack_first && let Some(stream) = stacked.accept(entry, task) {
            return Accept::Stream(BypassStream::of_stack(stream));
        }
        Accept::Empty
    }

    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<BypassStream<L, I>, StreamError> {
        if let (Some(stacked), Address::Ip(ip)) = (&self.stacked, target)
            && stacked.reaches(ip.ip())
        {
            let stream = stacked.connect(*ip, options, task)?;
            return Ok(BypassStream::of_stack(stream));
        }
        let stream = self.inner.connect(target, options, task)?;
        Ok(BypassStream::of_inner(stream))
    }

    fn poll(&self, park: Park, events: &mut Events) {
        let Some(stacked) = &self.stacked else {
            return self.inner.poll(park, events);
        };
        let reported = events.acceptable.len();
        let park = if events.ready.is_empty() {
            stacked.park(park, || self.inner.now())
        } else {
            Park::No
        };
        self.inner.poll(park, events);
        let listeners = stacked.listeners.borrow();
        listeners.translate(&mut events.acceptable, reported);
        drop(listeners);
        stacked.receive(self.inner.now(), events);
    }

    fn settle(&self) {
        if let Some(stacked) = &self.stacked {
            stacked.stack.borrow_mut().settle(self.inner.now());
        }
        self.inner.settle();
    }
}

impl<L: Link + 'static, I: Engine> BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn accept_inner(&self, listener: ListenerId, task: TaskId) -> Accept<BypassStream<L, I>> {
        match self.inner.accept(listener, task) {
            Accept::Stream(stream) => Accept::Stream(BypassStream::of_inner(stream)),
            Accept::Empty => Accept::Empty,
            Accept::Aborted => Accept::Aborted,
            Accept::Exhausted(code) => Accept::Exhausted(code),
        }
    }
}

impl<L: Link, F: FileBytes> Stacked<L, F> {
    /// Whether only the stack listens at an address: the kernel does not know it.
    fn is_alone_at(&self, address: &Address) -> bool {
        match address {
            Address::Ip(ip) => self.stack.borrow().host.is_own(canonical(*ip).ip()),
            Address::Unix(_) => false,
        }
    }

    /// Listens where the stack has a part in the address; `None` where it has none.
    fn listen(
        &self,
        options: &ListenOptions,
    ) -> Option<Result<mill_stack::socket::ListenerId, mill_stack::socket::ListenError>> {
        let Address::Ip(address) = options.address else {
            return None;
        };
        let host = &mut self.stack.borrow_mut().host;
        let address = canonical(address);
        if !address.ip().is_unspecified() && !host.is_own(address.ip()) {
            return None;
        }
        Some(host.listen(address, &listen_options(options)))
    }

    fn send_buffer_of(&self, options: &ListenOptions) -> u32 {
        let asked = options.send_buffer_bytes;
        let asked = asked.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        asked.map_or(self.send_buffer_bytes, |bytes| {
            bytes.max(SEND_BUFFER_BYTES_MIN)
        })
    }

    fn accept(&self, entry: &mut Entry, task: TaskId) -> Option<StackStream<L, F>> {
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

    fn reaches(&self, target: IpAddr) -> bool {
        self.stack.borrow().host.reaches(target.to_canonical())
    }

    fn connect(
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
            let host = &mut self.stack.borrow_mut().host;
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

    fn park(&self, park: Park, now: impl FnOnce() -> Instant) -> Park {
        if self.listeners.borrow().has_waiting() {
            return Park::No;
        }
        self.stack.borrow().park(park, now)
    }

    /// What the frames and timers of this turn changed.
    fn receive(&self, now: Instant, events: &mut Events) {
        let mut stack = self.stack.borrow_mut();
        stack.receive(now);
        stack.report(&mut events.ready);
        let mut listeners = self.listeners.borrow_mut();
        for listener in stack.drain_acceptable() {
            listeners.note_waiting(listener);
        }
        listeners.report(&mut events.acceptable);
    }
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

impl<L: Link, I: Engine> Clone for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            stacked: self.stacked.clone(),
        }
    }
}

impl<L: Link, I: Engine> fmt::Debug for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stacked {
            Some(stacked) => write!(formatter, "BypassEngine({:?})", stacked.stack.borrow()),
            None => formatter.write_str("BypassEngine(no stack)"),
        }
    }
}

/// Bytes: as Linux's largest automatic send buffer (the last of `net.ipv4.tcp_wmem`). At 100 Gbit/s it fills a path of
/// 0.3 ms, at 1 Gbit/s one of 33 ms.
const SEND_BUFFER_BYTES: u32 = 4 * 1024 * 1024;

/// Bytes: Linux's smallest send buffer (`SOCK_MIN_SNDBUF`). With less a writer would wait for the acknowledgement of each
/// segment, which its peer delays.
const SEND_BUFFER_BYTES_MIN: u32 = 4608;
