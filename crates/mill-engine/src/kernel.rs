//! The engine on kernel sockets: the epoll set, the slab of connections, the turn's two shared buffers.
//!
//! Way of a request, top to bottom: `poll` (epoll reports a slot) → the task's `poll_readable` receives into the
//! shared inbound buffer → `read` lends it → `write` gathers into the shared outbound buffer → the next
//! `poll_readable`, or `settle`, sends it. Two system calls per request, besides one epoll_wait per turn.
//!
//! A connection enters epoll only when its task has to wait: one that is answered and closed at once never does.

/// One connection's state.
mod slot;

/// What was written and not sent yet.
mod outbound;

/// The two buffers that all connections of a worker share within a turn.
mod buffers;

/// Receiving, waiting and closing of one slot.
mod connection;

/// Sending of one slot.
mod sending;

/// The precision of timeouts.
mod precision;

/// One slot's socket: results of system calls, and sending the queue.
mod transmit;

/// The listeners.
mod listeners;

/// The handle that a task holds.
mod stream;

/// What other threads send: listening sockets, and that there is mail.
mod mailbox;

/// Sockets of datagrams.
mod datagrams;

pub use datagrams::KernelDatagrams;
pub use stream::KernelStream;

use crate::files::KernelFiles;
use crate::wall_clock::WallClock;
use buffers::{Gather, Inbound};
use listeners::Listeners;
use mill_runtime::address::Address;
use mill_runtime::engine::{
    Accept, ConnectOptions, DrainListener, Engine, Events, ListenError, ListenOptions, ListenerId,
    Listening, Orphans, Park,
};
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_sys::address::Peer;
use mill_sys::epoll::{Epoll, Event, Interest, Watcher};
use mill_sys::socket::ConnectorOptions;
use mill_sys::{clock, descriptor, socket};
use outbound::Outbound;
use precision::Precision;
use slot::{Slot, Slots};
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Options of an engine.
#[derive(Debug, Default)]
pub struct KernelOptions {
    /// A datagram socket by which another thread offers listening sockets (key and descriptor in one datagram), and
    /// announces mail (any other datagram, which may be empty).
    pub mailbox: Option<OwnedFd>,
    /// [`Engine::poll`] waits with nanosecond precision (epoll_pwait2) instead of rounding up to a millisecond; where
    /// the kernel lacks that call it returns up to a millisecond early, never late. The thread's timer slack comes on
    /// top.
    pub exact_waits: bool,
    /// Where the thread stores until when it sleeps at the latest, in nanoseconds of the clock, and 0 afterwards.
    pub parked_until: Option<&'static AtomicU64>,
}

/// A worker's connections on kernel sockets. Clones are handles on the same engine.
#[derive(Clone, Debug)]
pub struct KernelEngine(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    epoll: Rc<Epoll>,
    files: KernelFiles,
    mailbox: Option<OwnedFd>,
    /// Mail that was found while the mailbox was searched for an offer: reported by the next poll without epoll.
    has_mail: Cell<bool>,
    /// Duplicates of the descriptors of [`KernelEngine::watch`].
    watched: RefCell<Vec<OwnedFd>>,
    precision: Cell<Precision>,
    parked_until: Option<&'static AtomicU64>,
    slots: RefCell<Slots>,
    listeners: RefCell<Listeners>,
    datagrams: RefCell<datagrams::Sockets>,
    /// The epoll reports of this turn.
    reports: RefCell<Vec<Event>>,
    inbound: RefCell<Inbound>,
    gather: RefCell<Gather>,
    /// Emptied queues, kept for the next connection that needs one.
    #[expect(clippy::vec_box, reason = "the boxes are handed out as they are")]
    spare_queues: RefCell<Vec<Box<Outbound>>>,
    /// Slots that have queued something in this turn, or can send again: flushed at the end of the turn at the latest.
    unsent: RefCell<Vec<u32>>,
    /// Tokens of slots that sent their share of this turn and have more, or have another task: reported in the next one
    /// without epoll.
    resumed: RefCell<Vec<u64>>,
    random_numbers: Cell<u64>,
    random_key: RandomState,
    wall_clock: WallClock,
}

impl KernelEngine {
    /// Costs two system calls, with a mailbox five.
    pub fn new(options: KernelOptions) -> io::Result<Self> {
        let epoll = Rc::new(Epoll::new()?);
        if let Some(mailbox) = &options.mailbox {
            descriptor::set_nonblocking(mailbox.as_fd(), true)?;
            epoll.add(mailbox.as_fd(), LEVEL_READABLE, MAILBOX_TOKEN)?;
        }
        let files = KernelFiles::new(Rc::clone(&epoll), FILES_TOKEN);
        Ok(Self(Rc::new(Inner {
            epoll,
            files,
            mailbox: options.mailbox,
            has_mail: Cell::new(false),
            watched: RefCell::default(),
            precision: Cell::new(Precision::asked(options.exact_waits)),
            parked_until: options.parked_until,
            slots: RefCell::default(),
            listeners: RefCell::default(),
            datagrams: RefCell::default(),
            reports: RefCell::new(vec![Event::EMPTY; REPORTS_PER_TURN]),
            inbound: RefCell::new(Inbound::new()),
            gather: RefCell::new(Gather::new()),
            spare_queues: RefCell::default(),
            unsent: RefCell::default(),
            resumed: RefCell::default(),
            random_numbers: Cell::new(0),
            random_key: RandomState::new(),
            wall_clock: WallClock::default(),
        })))
    }

    /// Makes [`Engine::poll`] end while `descriptor` is readable. The descriptor is neither read nor reported: its
    /// owner checks it after every poll. Ends when the descriptor is closed.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.watch_as(descriptor, LEVEL_READABLE)
    }

    /// The same for a descriptor that is never read: each change ends a wait.
    pub fn watch_changes(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let interest = Interest {
            edge: true,
            ..LEVEL_READABLE
        };
        self.watch_as(descriptor, interest)
    }

    fn watch_as(&self, descriptor: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        let own = descriptor.try_clone_to_owned()?;
        // A duplicate, so that it can be removed from the set by its own number.
        let mut watched = self.0.watched.borrow_mut();
        let token = WATCH_TOKEN_MAX - watched.len() as u64;
        debug_assert!(token >= WATCH_TOKEN_MIN, "more descriptors than tokens");
        self.0.epoll.add(own.as_fd(), interest, token)?;
        watched.push(own);
        Ok(())
    }
}

impl KernelEngine {
    /// As [`Self::watch`], for an owner that watches different descriptors over time.
    pub fn watcher(&self) -> io::Result<Watcher> {
        Watcher::new(&self.0.epoll, WATCHER_TOKEN)
    }

    /// The number of connections.
    pub fn connections_count(&self) -> usize {
        self.0.slots.borrow().count()
    }

    /// Calls `look` with the sockets and peers of connections in slots from `from` on, at most `look_max` of them;
    /// returns the slot to continue with.
    pub fn connections_from(
        &self,
        from: u32,
        look_max: u32,
        mut look: impl FnMut(BorrowedFd<'_>, Address),
    ) -> Option<u32> {
        let mut slots = self.0.slots.borrow_mut();
        let places = slots.places();
        let to = from.saturating_add(look_max).min(places);
        for index in from..to {
            if let Some(slot) = slots.slot(index) {
                look(slot.descriptor.as_fd(), slot.peer());
            }
        }
        (to < places).then_some(to)
    }
}

impl Engine for KernelEngine {
    type Stream = KernelStream;
    type Files = KernelFiles;

    fn files(&self) -> &KernelFiles {
        &self.0.files
    }

    fn clock(&self) -> (Instant, UnixTime) {
        self.0.wall_clock.clock(self.now())
    }

    fn now(&self) -> Instant {
        let nanos = u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos)
    }

    /// xorshift64* (Vigna 2016), seeded by the kernel.
    /// A keyed hash (SipHash) of how many were drawn before: clients see some of these numbers, in `$request_id` and in
    /// boundaries, and must not know others from them, such as identifiers of questions to name servers.
    fn random(&self) -> u64 {
        let number = self.0.random_numbers.get();
        self.0.random_numbers.set(number.wrapping_add(1));
        self.0.random_key.hash_one(number)
    }

    fn listen(&self, options: &ListenOptions) -> Result<Listening, ListenError> {
        if self.0.collect_mail() {
            self.0.has_mail.set(true);
        }
        let id = self.0.listeners.borrow_mut().open(options)?;
        Ok(Listening {
            id,
            unsupported: Vec::new(),
        })
    }

    fn close_listener(&self, listener: ListenerId) {
        self.0.listeners.borrow_mut().close(&self.0.epoll, listener);
    }

    fn set_accepting(&self, listener: ListenerId, accepting: bool) {
        self.0
            .listeners
            .borrow_mut()
            .set_accepting(&self.0.epoll, listener, accepting);
    }

    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<KernelStream> {
        let listeners = self.0.listeners.borrow();
        let Some(descriptor) = listeners.descriptor(listener) else {
            return Accept::Empty;
        };
        match socket::accept(descriptor) {
            Ok((descriptor, peer)) => {
                let local = match peer {
                    Peer::Ip(_) => None,
                    Peer::Unix => listeners.address(listener),
                };
                Accept::Stream(
                    self.0
                        .open_slot(Slot::accepted(descriptor, task, peer, local)),
                )
            }
            Err(error) => {
                if accept_never_succeeds(&error) {
                    // epoll would report it for ever.
                    drop(listeners);
                    self.set_accepting(listener, false);
                }
                accept_failed(&error)
            }
        }
    }

    fn accepts_freely(&self, _: ListenerId) -> bool {
        false
    }

    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<KernelStream, StreamError> {
        let connector = ConnectorOptions {
            mark: None,
            source: options.source.as_ref().map(listeners::endpoint),
            transparent: options.transparent,
            nodelay: options.nodelay,
            keepalive: options.keepalive,
            receive_buffer_bytes: options.receive_buffer_bytes,
            send_buffer_bytes: options.send_buffer_bytes,
        };
        let descriptor = socket::connect(listeners::endpoint(target), &connector)
            .map_err(|error| transmit::stream_error(&error))?;
        Ok(self
            .0
            .open_slot(Slot::connecting(descriptor, task, target.clone())))
    }

    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime) {
        self.0.report_resumed(events);
        self.0.datagrams.borrow_mut().take_due(&mut events.ready);
        events.mail = self.0.has_mail.take();
        let timeout = match park {
            _ if events.mail || !events.ready.is_empty() => Some(Duration::ZERO),
            Park::No => Some(Duration::ZERO),
            Park::Until(instant) => Some(instant.since(self.now())),
            Park::Forever => None,
        };
        let timeout = self.0.complete_listeners(timeout);
        let sleeps = timeout != Some(Duration::ZERO);
        if sleeps {
            self.0.show_park(park);
        }
        self.0.collect_reports(timeout, events);
        if sleeps {
            self.0.show_park(Park::No);
        }
        self.clock()
    }

    fn settle(&self) {
        self.0.flush_gathered();
        self.0.flush_unsent();
        self.0.keep_unread();
    }
}

/// The kernel accepts connections into the queue by itself, and has no call that stops it without closing the listener.
impl DrainListener for KernelEngine {
    fn drain_listener(&self, _: ListenerId) -> bool {
        true
    }

    fn keep_listener(&self, _: ListenerId) {}
}

/// The kernel completes closed connections, also after the process has ended.
impl Orphans for KernelEngine {
    fn has_lingering_orphans(&self) -> bool {
        false
    }

    fn orphans(&self) -> usize {
        0
    }

    fn abort_orphans(&self) -> bool {
        false
    }
}

impl Inner {
    fn open_slot(self: &Rc<Self>, slot: Slot) -> KernelStream {
        let index = self.slots.borrow_mut().insert(slot);
        KernelStream::new(Rc::clone(self), index)
    }

    /// Two plain stores for each sleep, which takes a system call anyway.
    fn show_park(&self, park: Park) {
        let until = match park {
            Park::No => 0,
            Park::Until(instant) => instant.as_nanos(),
            Park::Forever => u64::MAX,
        };
        if let Some(shown) = self.parked_until {
            shown.store(until, Ordering::Relaxed);
        }
    }

    /// Retries to register listeners for which the kernel had no memory. While some are missing a turn waits at most
    /// until the next attempt; returns that time.
    fn complete_listeners(&self, timeout: Option<Duration>) -> Option<Duration> {
        let mut listeners = self.listeners.borrow_mut();
        if listeners.is_incomplete() {
            listeners.complete(&self.epoll);
        }
        if listeners.is_incomplete() {
            Some(timeout.map_or(REGISTER_PAUSE, |timeout| timeout.min(REGISTER_PAUSE)))
        } else {
            timeout
        }
    }

    /// Reports the slots that are due without epoll: they used up their share in the turn before, or have another task.
    fn report_resumed(&self, events: &mut Events) {
        let mut slots = self.slots.borrow_mut();
        for token in self.resumed.borrow_mut().drain(..) {
            if let Some(slot) = slots.by_token(token) {
                (slot.flags.share_used, slot.flags.resumed) = (false, false);
                if !std::mem::replace(&mut slot.flags.unsent, true) {
                    self.unsent.borrow_mut().push(Slots::index(token));
                }
                events.ready.push(slot.task);
            }
        }
    }

    /// Waits for epoll's reports and turns each into an event.
    fn collect_reports(&self, timeout: Option<Duration>, events: &mut Events) {
        let mut buffer = self.reports.borrow_mut();
        let reports = self.precision.get().wait(&self.epoll, &mut buffer, timeout);
        let reports = reports.unwrap_or_else(|error| {
            self.precision.set(self.precision.get().after(&error));
            &[]
        });
        let mut slots = self.slots.borrow_mut();
        for report in reports {
            match report.token() {
                MAILBOX_TOKEN => {
                    events.mail = true;
                    self.collect_mail();
                    if report.finished() {
                        self.leave_mailbox();
                    }
                }
                FILES_TOKEN => self.files.collect(&mut events.ready),
                // The descriptor's other end is closed: epoll would report it for ever.
                token @ WATCH_TOKEN_MIN..=WATCH_TOKEN_MAX => {
                    if report.finished() {
                        self.leave_watched(token);
                    }
                }
                token if token & LISTENER_BIT != 0 => {
                    let index = u32::try_from(token & !LISTENER_BIT).unwrap_or(u32::MAX);
                    events.acceptable.push(ListenerId(index));
                }
                token if token & DATAGRAM_BIT != 0 => {
                    let task = self.datagrams.borrow_mut().on_report(*report);
                    events.ready.extend(task);
                }
                token => {
                    if let Some(slot) = slots.by_token(token) {
                        if slot.on_report(*report) {
                            self.unsent.borrow_mut().push(Slots::index(token));
                        }
                        events.ready.push(slot.task);
                    }
                }
            }
        }
    }

    fn leave_watched(&self, token: u64) {
        let place = usize::try_from(WATCH_TOKEN_MAX - token).unwrap_or(usize::MAX);
        if let Some(watched) = self.watched.borrow().get(place) {
            // Fails only if it was removed already.
            let _ = self.epoll.remove(watched.as_fd());
        }
    }
}

/// The consequence of a failed accept.
fn accept_failed(error: &io::Error) -> Accept<KernelStream> {
    match error.raw_os_error() {
        Some(code @ (EMFILE | ENFILE | ENOBUFS | ENOMEM)) => Accept::Exhausted(code),
        _ if error.kind() == io::ErrorKind::WouldBlock => Accept::Empty,
        _ if accept_never_succeeds(error) => Accept::Empty,
        // accept(2): pending errors of the new connection are reported by accept itself.
        _ => Accept::Aborted,
    }
}

/// Whether the socket does not listen (any more): another process with a duplicate may have shut it down.
fn accept_never_succeeds(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EBADF | EINVAL | ENOTSOCK))
}

/// How long a listener that could not be registered waits for the next attempt: as long as accepting pauses when
/// descriptors run out.
const REGISTER_PAUSE: Duration = Duration::from_millis(500);

/// Reports of one epoll_wait, which bound the work of a turn. nginx's default is the same.
const REPORTS_PER_TURN: usize = 512;

/// Tokens: a slot's generation and index, or one of these.
const LISTENER_BIT: u64 = 1 << 63;
const DATAGRAM_BIT: u64 = 1 << 62;
const MAILBOX_TOKEN: u64 = u64::MAX;

/// Tokens of watched descriptors, the first of them the highest: an engine has one link of at most 64 queues, with a
/// descriptor each, and few others.
const WATCH_TOKEN_MAX: u64 = u64::MAX - 1;
const WATCH_TOKEN_MIN: u64 = u64::MAX - 128;
const WATCHER_TOKEN: u64 = WATCH_TOKEN_MIN;
const FILES_TOKEN: u64 = WATCH_TOKEN_MIN - 1;

const LEVEL_READABLE: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};

/// Linux's error numbers (asm-generic/errno.h).
const EBADF: i32 = 9;
const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOTSOCK: i32 = 88;
const ENOBUFS: i32 = 105;
