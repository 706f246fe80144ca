//! Handover of a device between processes: exactly one process owns the device at any time, and ownership moves from
//! process to process without losing a frame.
//!
//! The lock is made with the device, and each process has descriptors of it: a file to lock, and a queue of requests.
//! The owner is the process whose descriptor table holds the lock on the file's first byte; the kernel releases the lock however
//! that process ends. Each process also locks a byte of its own, by which the others see that it lives. All other processes stand by, each with a way to the owner: a channel for messages and a `Relay` for frames.
//! A standby process sends through the owner. The owner gives it the frames of its connections, which the directory in the lock's
//! file names (`directory.rs`), and new connections where several processes listen.
//!
//! ```text
//! N, a new process               O, the owner               S, which stands by
//!  │  TAKE + end of a channel     │◀─────── channel, relay ───▶│
//!  ├─ request queue ─────────────▶│                            │  "give me the device"
//!  │                              │ lists its flows in the directory, stops using the rings
//!  │◀──────────── GIVEN + relay ──┤                            │  "it is yours; I stand by, and have so many ways"
//!  │◀── PASSED + channel, relay ──┤                            │  "a way to S": its end, as it is; S notices nothing
//!  │                              │ unlocks the file           │
//!  │ locks the file               │                            │
//!  │◀─────────────────────── channel, relay ──────────────────▶│
//!  │                              │                            │
//!  │◀── request queue ── WAITING ─┤                            │  "these wait where I do not listen any more" + memory file
//!  ├─ LEAVING ───────────────────▶├───────────────────────────▶│  "I serve no port; a process that does may TAKE"
//!  ╳ ends: O locks the file       │                            │
//!                                 │◀─ request queue ─ JOIN ────┤  + end of a channel
//!                                 ├─ WELCOME + relay ─────────▶│
//! ```
//!
//! The end of a channel tells either side that the other is gone. A process that loses its owner locks the file if it is free, and
//! otherwise sends JOIN. Under `millstream run` an owner that ends waits for a moment until another one has the device, so that all ways go on.
//!
//! What the owner gives to a process may be another's by the time it arrives, or arrive at none: it goes back, and the owner's host looks
//! again whose it is (`returned_frames.rs`). What no process can have yet waits (`waiting_frames.rs`).
//!
//! An interface whose queues are in partitions (`partitions.rs`) has a lock for each of them, and the directory of the first one's. A
//! process that is to have none of a partition's frames begins with JOIN instead of TAKE, so that it gets those of its connections,
//! and the partition if its owner leaves or ends.

use crate::wanted::Wanted;
use directory::{Directory, ProcessTag};
use message::{
    JOIN, OWN_PART, Said, TAKE, TAKE_AHEAD, WAITING, connections_in, receive_message, send_message,
};
use mill_sys::epoll::{Epoll, Event, Interest, Watcher};
use mill_sys::lock::Holder;
use mill_sys::timerfd::Timer;
use mill_sys::{descriptor, passing};
use shared_words::SharedWords;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Messages between processes.
mod message;

/// What all processes know.
mod shared_words;

/// Which process has a flow.
pub(crate) mod directory;

/// What a process has of the handover.
pub(crate) mod member;

/// A process at the other end of a way.
mod peer_process;

/// The processes that stand by.
pub(crate) mod peers;

/// Frames that wait for a way.
mod waiting_frames;

/// Frames that come back.
pub(crate) mod returned_frames;

/// The owner's side.
pub(crate) mod owner;

pub(crate) use message::{Message, VERSION, next_message};
pub(crate) use peer_process::{PeerProcess, Way};

/// The lock of a device, as each process that may own the device holds it.
#[derive(Clone, Debug)]
pub struct OwnershipLock<D = OwnedFd> {
    lock: D,
    /// Requests are written to the first and read, by the owner, from the second.
    request_sender: D,
    request_receiver: D,
}

/// One link's part in the handover: the lock, and what ends the link's waits.
#[derive(Debug)]
pub(crate) struct Endpoint {
    ownership: OwnershipLock,
    /// Of the device. This process may have several endpoints of it.
    holder: Holder,
    /// Of the byte that says that this process lives, from when it first has a part in the device, or asks for one.
    presence: Holder,
    /// At which change it was found out last whether others live, and whether none does.
    was_alone: Cell<(u64, bool)>,
    sources: Epoll,
    timer: Timer,
    watcher: Option<Watcher>,
    number: ProcessNumber,
    shared: SharedWords,
    /// By which processes of one device tell each other apart.
    identity: u64,
    directory: Directory,
}

/// The number of a process among those that may own the device: later ones have greater ones, so that of several that want it at
/// the same time the latest has it in the end. 0 where there is no order.
pub(crate) type ProcessNumber = u64;

/// What the owner reads from the queue of requests.
#[derive(Debug)]
pub(crate) enum Asked {
    Request(Request),
    /// Connections that wait at listeners of a former owner: bytes of mill-stack's host/migration/format.rs.
    Waiting(Vec<u8>),
}

/// A request as the owner reads it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) request_kind: RequestKind,
    pub(crate) number: ProcessNumber,
    pub(crate) identity: u64,
    /// The device is to be this process's, also while others serve.
    pub(crate) is_for_own_part: bool,
    pub(crate) channel: OwnedFd,
}

/// What a process wants of a device that another one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The device, as soon as it serves a port.
    Take,
    /// The same, and also as soon as it opens connections: its part of the device, beside others of the same program.
    Share,
    /// A way to the owner, and the device if that leaves or ends.
    Join,
}

impl Aim {
    /// Whether a process that wants this of its link is to be the owner now.
    pub(crate) fn is_met_by_owning(self, wanted: &Wanted) -> bool {
        match self {
            Self::Take => wanted.is_serving(),
            Self::Share => wanted.is_serving() || wanted.opens_ports,
            Self::Join => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The device, or a way to its owner.
    Take,
    /// The device, for a process that has a way to its owner.
    TakeAhead,
    Join,
}

/// What a descriptor in the endpoint's epoll set stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    Network,
    Requests,
    Timer,
    /// Messages of the owner, or its answer.
    Owner,
    OwnerDoorbell,
    /// Messages of one of those that stand by.
    Peer,
    PeerDoorbell,
}

/// The sources that were ready at the last poll.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadySources(u32);

impl OwnershipLock {
    pub fn new() -> io::Result<Self> {
        let (request_sender, request_receiver) = passing::pair()?;
        for end in [&request_sender, &request_receiver] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let lock = SharedWords::create()?;
        Ok(Self {
            lock: lock.into(),
            request_sender,
            request_receiver,
        })
    }

    /// Makes the lock of three descriptors, in the order of [`Self::descriptors`].
    pub fn of(descriptors: [OwnedFd; 3]) -> Self {
        let [lock, request_sender, request_receiver] = descriptors;
        Self {
            lock,
            request_sender,
            request_receiver,
        }
    }
}

impl<D> OwnershipLock<D> {
    pub fn descriptors(&self) -> [&D; 3] {
        [&self.lock, &self.request_sender, &self.request_receiver]
    }

    pub fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<OwnershipLock<E>> {
        Ok(OwnershipLock {
            lock: copy(&self.lock)?,
            request_sender: copy(&self.request_sender)?,
            request_receiver: copy(&self.request_receiver)?,
        })
    }
}

impl Endpoint {
    /// Joins the contest for the device, as the process of this number; the second value is whether this process owns it now.
    pub(crate) fn new(ownership: OwnershipLock, number: ProcessNumber) -> io::Result<(Self, bool)> {
        // Before the file is locked: closing any descriptor of it would release the lock (fcntl(2)).
        let shared = SharedWords::map(File::from(ownership.lock.try_clone()?))?;
        let identity = match number {
            0 => shared.draw_identity(),
            number => number,
        };
        let mut endpoint = Self {
            identity,
            directory: shared.directory(identity),
            holder: Holder::new(&ownership.lock, OWNERSHIP_BYTE)?,
            presence: Holder::new(&ownership.lock, ProcessTag::of(identity).number())?,
            was_alone: Cell::new((0, true)),
            ownership,
            shared,
            sources: Epoll::new()?,
            timer: Timer::new()?,
            watcher: None,
            number,
        };
        let timer = endpoint.timer.as_fd();
        endpoint
            .sources
            .add(timer, LEVEL, EventSource::Timer as u64)?;
        let is_ours = endpoint.lock();
        Ok((endpoint, is_ours))
    }

    /// Its number and identity, for other processes.
    pub(crate) const fn names(&self) -> (ProcessNumber, u64) {
        (self.number, self.identity)
    }

    /// Whether processes have an order, and are in groups (`process_group.rs`).
    pub(crate) const fn is_numbered(&self) -> bool {
        self.number != 0
    }

    pub(crate) const fn directory(&self) -> Directory {
        self.directory
    }

    /// Its flows are in the directory of another partition.
    pub(crate) const fn set_directory(&mut self, directory: Directory) {
        self.directory = directory;
    }

    /// The ownership changes: processes may have no way to the owner for a moment, and then do not get frames of their connections.
    pub(crate) fn note_change(&self) {
        self.shared.note_change();
    }

    /// The last change was so long ago.
    #[cfg(test)]
    pub(crate) fn note_change_before(&self, time: Duration) {
        self.shared.note_change_before(time);
    }

    /// Whether each process that runs has had time to find its way to the owner.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.is_unchanged_for(SETTLED)
    }

    /// Whether a process that does not seem to live has ended, rather than that its locks are about to be another one's, which goes on in its
    /// place.
    pub(crate) fn is_calm(&self) -> bool {
        self.shared.is_unchanged_for(CALM)
    }

    /// Whether connections that were on the way between processes have arrived, or are lost.
    pub(crate) fn has_arrived(&self) -> bool {
        self.shared.is_unchanged_for(ARRIVED)
    }

    /// Whether the process of this tag lives. One that has no way to the owner, as it was stopped since before the last change, looks for
    /// it when it goes on. Costs a system call.
    pub(crate) fn lives(&self, tag: ProcessTag) -> bool {
        let byte = tag.number();
        let lock = &self.ownership.lock;
        self.presence.is_held_by_another(lock, byte..=byte)
    }

    /// Whether it was certain since the last change that no other process lives, so that none has a flow.
    pub(crate) fn is_alone(&self) -> bool {
        let changed_at = self.shared.changed_at();
        let (looked_at, was_alone) = self.was_alone.get();
        if looked_at == changed_at {
            return was_alone;
        }
        if !self.is_settled() {
            return false;
        }
        let is_alone = !self.has_company();
        self.was_alone.set((changed_at, is_alone));
        is_alone
    }

    /// Whether another process lives that may own the device. Costs a system call.
    pub(crate) fn has_company(&self) -> bool {
        let lock = &self.ownership.lock;
        self.presence.is_held_by_another(lock, PRESENCE_BYTES)
    }

    /// Whether a request comes from a process before this one.
    pub(crate) fn is_later_than(&self, request: &Request) -> bool {
        request.number < self.number
    }

    /// Locks the file if it is free. The owner then receives the requests.
    pub(crate) fn lock(&mut self) -> bool {
        let is_free = !self.shared.is_reserved_from(self.identity);
        let is_ours = is_free && self.holder.lock(&self.ownership.lock).is_ok();
        if is_ours {
            // If it ends, the next one need not wait until the time is over.
            self.shared.end_reservation_for(self.identity);
            self.appear();
            // The source is registered already if this process owned the device before.
            let request_receiver = self.ownership.request_receiver.as_fd();
            let _ = self
                .sources
                .add(request_receiver, LEVEL, EventSource::Requests as u64);
        }
        is_ours
    }

    /// Says that this process lives. One that never had a part in the device is none that others would wait for.
    fn appear(&self) {
        // Without the lock, as for the second one of two identities of one tag, it counts as one that has ended where it has no way.
        let _ = self.presence.lock(&self.ownership.lock);
    }

    /// Gives ownership up to a process that has asked for it, before any other one.
    pub(crate) fn unlock_for(&mut self, heir: u64) {
        self.shared.reserve_for(heir, RESERVED);
        self.unlock();
    }

    /// The process that the device was given to has ended.
    pub(crate) fn end_reservation(&self) {
        self.shared.end_reservation();
    }

    /// Gives ownership up: the device must not be touched from here on.
    pub(crate) fn unlock(&mut self) {
        let _ = self.sources.remove(self.ownership.request_receiver.as_fd());
        // Unlocking cannot fail for a descriptor of a file that was locked.
        let _ = self.holder.unlock(&self.ownership.lock);
    }

    /// This process is about to make another endpoint of the device, by which it may lose its locks for a moment: no other process
    /// may have the device then.
    pub(crate) fn reserve_for_owner(&self) {
        if self.holder.has_it() {
            self.shared.reserve_for(self.identity, MADE_BESIDE);
        }
    }

    /// It is made: this one has its locks again.
    pub(crate) fn renew_locks(&self) -> io::Result<()> {
        let lock = &self.ownership.lock;
        let _ = self.presence.renew(lock);
        let renewed = self.holder.renew(lock);
        if self.holder.has_it() {
            self.shared.end_reservation();
        }
        renewed
    }

    /// In a child that goes on in its parent's place: both locks are its own once the parent has ended.
    pub(crate) fn take_locks(&self) -> io::Result<()> {
        let lock = &self.ownership.lock;
        self.presence.renew(lock)?;
        self.holder.renew(lock)?;
        if self.holder.has_it() {
            self.shared.end_reservation();
        }
        // Others may have found out meanwhile that this one has ended.
        self.note_change();
        Ok(())
    }

    /// Sends a request to the owner, which answers in the channel that is returned.
    pub(crate) fn send_request(&self, request_kind: RequestKind, aim: Aim) -> io::Result<OwnedFd> {
        self.appear();
        let (near, far) = passing::pair()?;
        for end in [&near, &far] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let kind = match request_kind {
            RequestKind::Take => TAKE,
            RequestKind::TakeAhead => TAKE_AHEAD,
            RequestKind::Join => JOIN,
        };
        let said = Said {
            number: self.number,
            identity: self.identity,
            detail: if aim == Aim::Join { 0 } else { OWN_PART },
            ..Said::of(kind)
        };
        send_message(&self.ownership.request_sender, said, &[far.as_fd()])?;
        self.open(EventSource::Owner, near.as_fd());
        Ok(near)
    }

    /// Passes connections that wait to the owner, or to the next one, if this one ends before it has read them; `false` if the
    /// queue is full.
    pub(crate) fn send_waiting(&self, connections: &[u8]) -> bool {
        let sent = || -> io::Result<()> {
            let mut file = passing::memory_file(c"millstream-waiting")?;
            file.write_all(connections)?;
            let to = &self.ownership.request_sender;
            send_message(to, Said::of(WAITING), &[file.as_fd()])
        };
        sent().is_ok()
    }

    /// The next request that still stands, or what is passed on. Only the owner may read them.
    pub(crate) fn request(&self) -> Option<Asked> {
        loop {
            let from = &self.ownership.request_receiver;
            let (said, descriptors) = receive_message(from).ok()??;
            let Some(channel) = descriptors.into_iter().next() else {
                continue;
            };
            let request_kind = match said.kind {
                TAKE => RequestKind::Take,
                TAKE_AHEAD => RequestKind::TakeAhead,
                JOIN => RequestKind::Join,
                WAITING => match connections_in(channel.into()) {
                    Ok(connections) => return Some(Asked::Waiting(connections)),
                    Err(_) => continue,
                },
                // An unknown request: dropping its channel is the answer.
                _ => continue,
            };
            let request = Request {
                request_kind,
                number: said.number,
                identity: said.identity,
                is_for_own_part: said.detail == OWN_PART,
                channel,
            };
            if !request.is_over() {
                return Some(Asked::Request(request));
            }
        }
    }

    /// Lets a source end waits.
    pub(crate) fn open(&self, source: EventSource, descriptor: BorrowedFd<'_>) {
        let interest = match source {
            // A doorbell's eventfd is never read, so it is edge-triggered: each write is an event.
            EventSource::OwnerDoorbell | EventSource::PeerDoorbell => EDGE,
            _ => LEVEL,
        };
        // The set is small; a source that cannot be added is polled when another one is ready.
        let _ = self.sources.add(descriptor, interest, source as u64);
    }

    pub(crate) fn close(&self, descriptor: BorrowedFd<'_>) {
        // Closing is not enough: the peer may hold duplicates of the descriptor, and epoll watches the open file.
        let _ = self.sources.remove(descriptor);
    }

    /// Polls all sources without waiting.
    pub(crate) fn poll(&self) -> ReadySources {
        let mut events = [Event::EMPTY; 8];
        let reports = self.sources.wait(&mut events, Some(Duration::ZERO));
        let mut ready = ReadySources::default();
        for report in reports.unwrap_or_default() {
            ready.0 |= 1 << (report.token() & 31);
        }
        ready
    }

    /// Ends waits at the latest after this time; `None` disarms the timer.
    pub(crate) fn set_timer(&self, after: Option<Duration>) {
        // If the timer fails, other sources still end the wait.
        let _ = self.timer.set(after);
    }

    /// Sets what lets the device's frames end the engine's waits.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    pub(crate) fn watch<'a>(&self, device: impl Iterator<Item = BorrowedFd<'a>>) {
        if let Some(watcher) = &self.watcher {
            for queue in device {
                // On failure frames are found when something else ends the wait.
                let _ = watcher.watch(queue);
            }
        }
    }

    pub(crate) fn unwatch<'a>(&self, device: impl Iterator<Item = BorrowedFd<'a>>) {
        if let Some(watcher) = &self.watcher {
            for queue in device {
                let _ = watcher.leave(queue);
            }
        }
    }
}

/// Readable while a source is ready.
impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }
}

impl Request {
    /// Whether the requester is gone or was already served, perhaps by this process: another owner may have answered
    /// and released the device since.
    pub(crate) fn is_over(&self) -> bool {
        // A requester sends nothing before it is answered.
        !matches!(receive_message(&self.channel), Ok(None))
    }
}

impl ReadySources {
    pub(crate) const fn at(self, source: EventSource) -> bool {
        self.0 & (1 << source as u32) != 0
    }
}

const LEVEL: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};
const EDGE: Interest = Interest {
    edge: true,
    ..LEVEL
};

/// The byte whose lock is that of the device, and those of processes.
const OWNERSHIP_BYTE: u32 = 0;
const PRESENCE_BYTES: RangeInclusive<u32> = 1..=u32::MAX;

/// How long a process may need to find its way to the owner if it is not stopped: it looks every few milliseconds.
const SETTLED: Duration = Duration::from_secs(1);

/// How long it may take at a change of the ownership until the locks of all that live are taken.
const CALM: Duration = Duration::from_millis(500);

/// How long connections may be on the way from one process to another; one of many on few processors can need seconds.
const ARRIVED: Duration = Duration::from_secs(10);

/// How long a process that was given the device may take to lock it: it looks every few milliseconds, if it runs. Where it has ended,
/// the one that gave the device hears of that at once.
const RESERVED: Duration = Duration::from_secs(1);

/// How long making a further endpoint may take, which attaches a stack.
const MADE_BESIDE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
