//! One stack of this process, and what waits for it.

use crate::descriptors::own;
use crate::lending::{Lending, Loan};
use crate::noting::Noting;
use crate::say::{say, say_more};
use crate::showing::Showing;
use crate::{declared, keeper, listening, originals, stacks};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use mill_device::AnyLink;
use mill_device::attach::Trouble;
use mill_device::process_group::GroupTable;
use mill_device::specification::Specification;
use mill_keeper::request;

use mill_sockets::slab::Number;
use mill_sockets::sockets::Sockets;
use mill_stack::polling::Polling;
use mill_sys::clock;
use mill_sys::epoll::{Epoll, Interest, Watcher};
use mill_tcp::time::{Duration, Instant};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A stack, and what waits for it.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Its number among those of this process.
    number: u8,
    /// The number of its process among those that have the device.
    process: u64,
    /// When other processes were heard last that pass connections; `None` once none can.
    heard_at: Option<Instant>,
    /// What it was made with.
    specification: Box<Specification>,
    pub(crate) sockets: Sockets<AnyLink>,
    /// Readable while the link has something.
    pub(crate) sources: Epoll,
    pub(crate) polling: Polling,
    /// When it was turned last.
    turned_at: Instant,
    /// When what was written was sent last.
    flushed_at: Instant,
    /// When frames came last.
    pub(crate) worked_at: Instant,
    /// When listeners were looked for last that the program has closed and whose sockets no process has any more.
    looked_at: Instant,
    /// What tells the peers if this process is killed.
    pub(crate) noting: Option<Noting>,
    /// How many times this process has become the owner of queues, when that was looked at last.
    takings: u64,
    pub(crate) sleepers: Vec<Sleeper>,
    /// What children have of its connections.
    lending: Option<Box<Lending>>,
}

/// Connections that wait, between processes.
pub(crate) mod passing;

impl Stack {
    /// The stack of this number.
    pub(crate) fn new(number: u8) -> Result<Self, String> {
        let noted = Noting::new();
        let ledger = noted.as_ref().map(|(_, file)| file);
        let admission = request::attach(keeper::socket(), ledger)?;
        let failed = |call: &str, error: io::Error| format!("{call}: {error}");
        let mut attachment = admission.attachment;
        // The interface is steered to this process as long as it lives, also without the keeper.
        core::mem::forget(attachment.take_hold());
        let membership = keeper::join(number, admission.membership);
        let specification = attachment.specification().clone();
        let parts = attachment.worker_count();
        let linked = attachment.link((admission.number, &admission.own), on_trouble);
        let (mut link, config) = linked.map_err(|error| failed("the link can't be made", error))?;
        link.set_ports(admission.ports);
        let sources = watch(&mut link).map_err(|error| failed("epoll_create1()", error))?;
        sources
            .add(membership, READABLE, 0)
            .map_err(|error| failed("epoll_ctl()", error))?;
        let now = now();
        let mut sockets = Sockets::numbered(number, config, link, now);
        let groups = GroupTable::open(&admission.groups, admission.number, parts, || {
            say("there are too many listeners: new connections at some are other processes'");
        });
        let groups = groups.map_err(|error| failed("mmap() of listeners", error))?;
        sockets.set_process_group(Box::new(groups));
        if !sockets.shares_addresses() {
            sockets.keep_unclaimed_syns();
        }
        sockets.list_young(noted.is_some());
        say_more(|| said(&specification, &admission.own, parts));
        Ok(Self {
            number,
            process: admission.number,
            heard_at: Some(now),
            sockets,
            sources,
            polling: specification.polling,
            specification: Box::new(specification),
            turned_at: now,
            flushed_at: now,
            worked_at: now,
            looked_at: now,
            noting: noted.map(|(noting, _)| noting),
            takings: u64::MAX,
            sleepers: Vec::new(),
            lending: None,
        })
    }

    /// What it shows of itself from now on.
    pub(crate) fn show(&self) -> Option<Showing> {
        Showing::new(self.number, keeper::socket(), &self.specification)
    }

    /// Its number among those of this process.
    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// One turn. Threads that sleep look again when frames came.
    pub(crate) fn turn(&mut self, now: Instant) {
        // Queues that come to this process bring descriptors.
        own::during(|| self.turn_once(now));
    }

    fn turn_once(&mut self, now: Instant) {
        // Changed with the lock held, so that no addition is lost; turner.rs only looks.
        let turns = stacks::turns(self.number);
        turns.store(
            turns.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
        (self.turned_at, self.flushed_at) = (now, now);
        self.claim();
        if self
            .heard_at
            .is_some_and(|at| now.since(at) > HEAR_INTERVAL)
        {
            self.hear(now);
        }
        if self.sockets.turn_timed(now, self::now) {
            self.worked_at = now;
        }
        if let Some(noting) = &mut self.noting {
            noting.note_young(&mut self.sockets);
        }
        if self.lending.is_some() {
            self.turn_loans();
        }
        if self.sockets.has_unclaimed() {
            self.sockets.settle_unclaimed(declared::has);
        }
        if self.sockets.left().next().is_some() && now.since(self.looked_at) > LOOK_INTERVAL {
            self.looked_at = now;
            listening::end_those_without_socket(&mut self.sockets);
        }
        if self.sockets.take_woken().count() > 0 || self.worked_at == now {
            self.wake();
        }
        self.pass_outgoing();
        self.pass_neglected_once(now);
    }

    /// A child has the connections of this stack, too.
    pub(crate) fn lend(&mut self, loan: Loan) {
        self.begin_lending();
        if let Some(lending) = &mut self.lending {
            lending.begin(loan, &mut self.sockets);
        }
    }

    /// Another process has one of them, by the other end of this socket; a reference is that process's.
    pub(crate) fn hand_over(&mut self, number: Number, socket: OwnedFd) {
        self.begin_lending();
        match &mut self.lending {
            Some(lending) => lending.hand_over(number, socket, &mut self.sockets),
            None => drop(self.sockets.close(number)),
        }
    }

    /// In a child after fork(2): its parent's ends of channels and sockets are closed here, or nothing would hear of the parent's
    /// closing them. The epoll sets are the parent's, too, and stay as they are.
    pub(crate) fn forget_loans(&mut self) {
        self.lending = None;
    }

    fn begin_lending(&mut self) {
        let sources = &self.sources;
        let begin = || -> io::Result<Box<Lending>> {
            let lending = Box::new(Lending::new()?);
            sources.add(lending.sources.as_fd(), READABLE, 0)?;
            Ok(lending)
        };
        if self.lending.is_none() {
            // Without it the child finds the channel's end, and has no connections.
            self.lending = own::during(begin).ok();
        }
    }

    /// What children have said goes before what this process says next.
    #[inline]
    pub(crate) fn settle_loans(&mut self) {
        if self.lending.is_some() {
            self.turn_loans();
        }
    }

    /// This process shuts a connection down for writing, and what other processes have written goes first.
    pub(crate) fn shuts_later(&mut self, number: Number) -> bool {
        let lending = self.lending.as_mut();
        lending.is_some_and(|lending| lending.shuts_later(number))
    }

    /// The program has read bytes of a connection itself.
    #[inline]
    pub(crate) fn note_read(&mut self, number: Number, count: usize) {
        if let Some(lending) = &mut self.lending {
            lending.note_read(number, count);
        }
    }

    /// Moves what children and peers say.
    #[cold]
    fn turn_loans(&mut self) {
        let Some(lending) = &mut self.lending else {
            return;
        };
        // What comes with messages is the library's.
        if own::during(|| lending.turn(&mut self.sockets)) {
            self.sockets.flush();
        }
        if lending.is_over() {
            // A child may have it, too, so that closing it is not enough.
            let _ = self.sources.remove(lending.sources.as_fd());
            self.lending = None;
        }
    }

    /// Whether other processes have connections of it.
    pub(crate) fn has_loans(&self) -> bool {
        self.lending.is_some()
    }

    /// Whether anything is left that outlives the process: what others have, what peers have not acknowledged, what waits for another
    /// process that listens.
    pub(crate) fn has_orphans(&self) -> bool {
        self.has_loans() || self.sockets.has_orphans() || self.sockets.has_waiting()
    }

    /// The process ends, and with it what children have of its connections.
    pub(crate) fn end_loans(&mut self) {
        if let Some(lending) = self.lending.take() {
            lending.end(&mut self.sockets);
        }
    }

    /// A turn, unless there was one a moment ago: for calls that wait for nothing, by programs that may never poll. One for each
    /// of them would take few frames, and send few.
    pub(crate) fn turn_now_and_then(&mut self) -> bool {
        let now = now();
        let is_due = !self.was_turned_lately(now);
        if is_due {
            self.turn(now);
        }
        is_due
    }

    pub(crate) fn was_turned_lately(&self, now: Instant) -> bool {
        now.since(self.turned_at) < TURN_INTERVAL
    }

    /// Sends what was written, unless that was done a moment ago: many writes leave together, and none waits for long.
    pub(crate) fn flush_now_and_then(&mut self) {
        let now = now();
        if now.since(self.flushed_at) >= FLUSH_INTERVAL {
            self.flushed_at = now;
            self.sockets.flush();
        }
    }

    /// A thread is about to sleep until this time, which its doorbell ends.
    pub(crate) fn add_sleeper(&mut self, doorbell: c_int, until: Option<Instant>) {
        self.sleepers.push(Sleeper { doorbell, until });
    }

    /// It sleeps no more.
    pub(crate) fn remove_sleeper(&mut self, doorbell: c_int) {
        self.sleepers.retain(|other| other.doorbell != doorbell);
    }

    /// After a call of another thread, with the lock still held: what it has said goes out, and its timers are the sleepers', as none else
    /// makes turns while they sleep.
    #[inline]
    pub(crate) fn heed_sleepers(&mut self) {
        if !self.sleepers.is_empty() {
            self.say_for_sleepers();
        }
    }

    #[cold]
    fn say_for_sleepers(&mut self) {
        self.sockets.flush();
        let Some(next) = self.sockets.next_turn() else {
            return;
        };
        let is_awake = |it: &Sleeper| it.until.is_some_and(|until| until <= next);
        if !self.sleepers.iter().any(is_awake) {
            self.wake();
        }
    }

    /// Ends the sleep of all threads: what they wait for may be there.
    pub(crate) fn wake(&mut self) {
        if self.sleepers.is_empty() {
            return;
        }
        for sleeper in &mut self.sleepers {
            let one = 1_u64.to_ne_bytes();
            // SAFETY: the bytes live through the call; an eventfd takes eight.
            unsafe { originals::write(sleeper.doorbell, one.as_ptr().cast(), one.len()) };
            // It looks again.
            sleeper.until = Some(self.turned_at);
        }
    }
}

/// A thread that sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleeper {
    /// An eventfd that ends the sleep.
    doorbell: c_int,
    /// When it ends without; `None` for never.
    until: Option<Instant>,
}

/// That there is a stack, and which part of the device it begins with.
fn said(specification: &Specification, own: &[u32], parts: usize) -> String {
    let process = std::process::id();
    let device = specification.device.to_string();
    let own: Vec<String> = own.iter().map(u32::to_string).collect();
    let own = own.join(", ");
    format!("process {process} has a stack over {device}, with {own} of its {parts} partitions")
}

/// All that can end a wait for the link.
fn watch(link: &mut AnyLink) -> io::Result<Epoll> {
    let sources = Epoll::new()?;
    // A link that owns its device only at times watches the descriptor itself.
    if link.set_watcher(Watcher::new(&sources, 0)?).is_some() {
        sources.add(link.as_fd(), READABLE, 0)?;
    }
    for queue in link.other_queues() {
        sources.add(queue, READABLE, 0)?;
    }
    for control in link.control_fds() {
        sources.add(control, READABLE, 0)?;
    }
    Ok(sources)
}

const READABLE: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};

/// How long a turn serves for all calls that find something, or do not wait.
const TURN_INTERVAL: Duration = Duration::from_micros(50);

/// How long what is written may wait for more.
const FLUSH_INTERVAL: Duration = Duration::from_micros(50);

/// How often it is looked for connections that other processes pass.
const HEAR_INTERVAL: Duration = Duration::from_millis(1);

/// How often listeners without socket are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

static IS_DEVICE_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the interface was deleted.
pub(crate) fn is_device_gone() -> bool {
    IS_DEVICE_GONE.load(Ordering::Relaxed)
}

fn on_trouble(trouble: Trouble) {
    match trouble {
        Trouble::DeviceGone => {
            IS_DEVICE_GONE.store(true, Ordering::Relaxed);
            say("the interface was deleted: the stack has no network any more");
        }
        Trouble::Capture(error) => say(&format!("frames can't be written down any more: {error}")),
        Trouble::Problem(what) | Trouble::Notice(what) => say(&what),
    }
}

/// The time, as the stack has it.
pub(crate) fn now() -> Instant {
    let now = clock::monotonic();
    Instant::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
