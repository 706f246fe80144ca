//! The engine: its turn, listening, connecting.

use crate::file_bytes::FileBytes;
use crate::listeners::Entry;
use crate::mapping::{listen_error, listen_options};
use crate::pace::Wait;
use crate::payload_queue::PayloadQueue;
use crate::stack_half::StackHalf;
use crate::stream::BypassStream;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
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
use mill_stack::host::status::Usage;
use mill_stack::link::{FlowSteering, Link, LinkLedger, LinkMonitor};
use mill_stack::polling::Polling;
use mill_stack::socket::SocketOptions;
use mill_tcp::config::Dscp;
use mill_tcp::counters::Counters;

/// How listeners and closed connections of an engine end.
mod ending;

pub(crate) use ending::is_under_way;

/// All that an engine needs of its link.
pub trait BypassLink: Link + FlowSteering + LinkMonitor + LinkLedger {}

impl<L: Link + FlowSteering + LinkMonitor + LinkLedger> BypassLink for L {}

/// What the stack of an engine is made with.
#[derive(Clone, Debug)]
pub struct StackOptions<L> {
    pub link: L,
    pub host: HostConfig,
    /// Bytes of one stream that count as taken by the transport before they are acknowledged, where the listener does
    /// not set [`ListenOptions::send_buffer_bytes`]: the memory that a writer fills before it has to wait, and the
    /// largest window that it can use.
    pub send_buffer_bytes: u32,
    pub polling: Polling,
    /// Options of connections that the stack opens. With `fast_open` a stream's first bytes, if they are
    /// written in the turn in which it is opened, leave with its SYN (RFC 7413): for requests that may come twice.
    pub opened: SocketOptions,
}

impl<L> StackOptions<L> {
    /// Sleeps until frames arrive.
    pub const fn new(link: L, host: HostConfig) -> Self {
        Self {
            link,
            host,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            polling: Polling::Interrupt,
            opened: OPENED,
        }
    }
}

/// As the host's configuration says.
const OPENED: SocketOptions = SocketOptions {
    mss_max: None,
    congestion: None,
    user_timeout: None,
    keepalive: None,
    receive_buffer_bytes: None,
    syn_retries_max: None,
    dscp: Dscp { ipv4: 0, ipv6: 0 },
    fast_open: false,
    fast_open_without_cookie: false,
};

/// A worker's connections: those over the link by a stack of our own, all others by the inner engine. Clones are
/// handles on the same engine.
///
/// A listener at a wildcard address listens at both; at an address of the host, at the stack; at any other, at the
/// inner engine. Connections are opened by the stack where one of its routes leads to the target over the link.
///
/// The inner engine's `poll` has to return when frames have arrived at the link, and at once while some are waiting.
pub struct BypassEngine<L: BypassLink, I: Engine>
where
    FileOf<I>: FileBytes,
{
    inner: I,
    /// `None` without a link: all connections are the inner engine's.
    stack_half: Option<Rc<StackHalf<L, FileOf<I>>>>,
}

/// The files of an engine.
pub type FileOf<I> = <<I as Engine>::Files as Files>::File;

impl<L: BypassLink, I: Engine> BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    pub fn new(inner: I, stack: Option<StackOptions<L>>) -> Self {
        let stack_half = stack.map(|options| Rc::new(StackHalf::new(options, inner.now())));
        Self { inner, stack_half }
    }

    pub(crate) fn stack_half(&self) -> Option<&StackHalf<L, FileOf<I>>> {
        self.stack_half.as_deref()
    }

    /// The engine of all that does not go over the link.
    pub const fn inner(&self) -> &I {
        &self.inner
    }

    /// Reads the host, for its counters and connections; `None` without one.
    pub fn with_host<R>(
        &self,
        look: impl FnOnce(&Host<PayloadQueue<FileOf<I>>>) -> R,
    ) -> Option<R> {
        let stack_half = self.stack_half.as_ref()?;
        Some(look(&stack_half.stack.borrow().host))
    }

    /// Reads the link, for its counters; `None` without one.
    pub fn with_link<R>(&self, look: impl FnOnce(&mut L) -> R) -> Option<R> {
        let stack_half = self.stack_half.as_ref()?;
        Some(look(&mut stack_half.stack.borrow_mut().link))
    }

    /// How many streams the stack has; 0 without one.
    pub fn stack_streams(&self) -> usize {
        let stack_half = self.stack_half.as_ref();
        stack_half.map_or(0, |stack_half| stack_half.stack.borrow().slots.count())
    }

    /// What the stack's host holds at present.
    pub fn usage(&self) -> Option<Usage> {
        let stack_half = self.stack_half.as_ref()?;
        Some(stack_half.stack.borrow().host.usage())
    }

    /// What the stack's TCP counted.
    pub fn tcp_counters(&self) -> Option<Counters> {
        let stack_half = self.stack_half.as_ref()?;
        Some(*stack_half.stack.borrow().host.tcp_counters())
    }
}

impl<L: BypassLink + 'static, I: Engine> Engine for BypassEngine<L, I>
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
        let Some(stack_half) = &self.stack_half else {
            return self.inner.listen(options);
        };
        let (inner, unsupported) = if stack_half.is_alone_at(&options.address) {
            (None, Vec::new())
        } else {
            let listening = self.inner.listen(options)?;
            (Some(listening.id), listening.unsupported)
        };
        let stack = match stack_half.listen(options) {
            Some(Ok(id)) => Some(id),
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
            send_buffer_bytes: stack_half.send_buffer_of(options.send_buffer_bytes),
            is_dual: listen_options(options).dual_stack,
            accepting: false,
            is_waiting: false,
            is_inner_waiting: false,
            stack_first: true,
        };
        let id = stack_half.listeners.borrow_mut().insert(entry);
        Ok(Listening { id, unsupported })
    }

    fn set_blocked(&self, addresses: &[IpAddr]) {
        if let Some(stack_half) = &self.stack_half {
            let mut stack = stack_half.stack.borrow_mut();
            stack.host.set_blocked(addresses);
            stack.link.set_blocked(addresses);
        }
    }

    fn can_block(&self) -> bool {
        self.stack_half.is_some()
    }

    fn close_listener(&self, listener: ListenerId) {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.close_listener(listener);
        };
        let entry = stack_half.listeners.borrow_mut().remove(listener);
        let Some(entry) = entry else { return };
        if let Some(inner) = entry.inner {
            self.inner.close_listener(inner);
        }
        if let Some(id) = entry.stack {
            stack_half.close_listener(id);
        }
    }

    fn set_accepting(&self, listener: ListenerId, accepting: bool) {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.set_accepting(listener, accepting);
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return;
        };
        entry.accepting = accepting;
        if let Some(inner) = entry.inner {
            self.inner.set_accepting(inner, accepting);
        }
    }

    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<BypassStream<L, I>> {
        let Some(stack_half) = &self.stack_half else {
            return self.accept_inner(listener, task);
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return Accept::Empty;
        };
        entry.stack_first = !entry.stack_first;
        let stack_first = entry.stack_first;
        if stack_first && let Some(stream) = stack_half.accept(entry, task) {
            return Accept::Stream(BypassStream::of_stack(stream));
        }
        if entry.is_inner_waiting
            && let Some(inner) = entry.inner
        {
            match self.accept_inner(inner, task) {
                Accept::Empty => entry.is_inner_waiting = false,
                found => return found,
            }
        }
        if !stack_first && let Some(stream) = stack_half.accept(entry, task) {
            return Accept::Stream(BypassStream::of_stack(stream));
        }
        Accept::Empty
    }

    /// Also at the stack: a connection that is accepted a turn late has its request acknowledged by a separate frame.
    fn accepts_freely(&self, listener: ListenerId) -> bool {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.accepts_freely(listener);
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        let entry = listeners.entry(listener);
        entry.is_some_and(|entry| entry.stack.is_some() && !entry.is_inner_waiting)
    }

    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<BypassStream<L, I>, StreamError> {
        if let (Some(stack_half), Address::Ip(ip)) = (&self.stack_half, target)
            && stack_half.reaches(ip.ip())
        {
            let stream = stack_half.connect(*ip, options, task)?;
            return Ok(BypassStream::of_stack(stream));
        }
        let stream = self.inner.connect(target, options, task)?;
        Ok(BypassStream::of_inner(stream))
    }

    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime) {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.poll(park, events);
        };
        let reported = events.acceptable.len();
        let park = if events.ready.is_empty() {
            park
        } else {
            Park::No
        };
        let clocks = match stack_half.wait(park, || self.inner.now()) {
            Wait::Inner(park) => {
                let ready = events.ready.len();
                let clocks = self.inner.poll(park, events);
                if events.mail || events.ready.len() > ready || events.acceptable.len() > reported {
                    stack_half.stack.borrow_mut().note_inner_activity();
                }
                clocks
            }
            _ => self.inner.clock(),
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        listeners.translate(&mut events.acceptable, reported);
        drop(listeners);
        stack_half.receive(clocks.0, || self.inner.now(), events);
        clocks
    }

    fn settle(&self) {
        if let Some(stack_half) = &self.stack_half {
            stack_half.settle(|| self.inner.now());
        }
        self.inner.settle();
    }
}

impl<L: BypassLink + 'static, I: Engine> BypassEngine<L, I>
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

impl<L: BypassLink, I: Engine> Clone for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            stack_half: self.stack_half.clone(),
        }
    }
}

impl<L: BypassLink, I: Engine> fmt::Debug for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stack_half {
            Some(stack_half) => write!(formatter, "BypassEngine({:?})", stack_half.stack.borrow()),
            None => formatter.write_str("BypassEngine(no stack)"),
        }
    }
}

/// Bytes: as Linux's largest automatic send buffer (the last of `net.ipv4.tcp_wmem`). At 100 Gbit/s it fills a path of
/// 0.3 ms, at 1 Gbit/s one of 33 ms.
const SEND_BUFFER_BYTES: u32 = 4 * 1024 * 1024;
