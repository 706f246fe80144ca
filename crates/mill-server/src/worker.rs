//! The run of a worker thread: orders in, turns, reports out.

/// The worker's listeners.
mod listeners;

pub use listeners::listen_options;

use crate::acme;
use crate::cache;
use crate::connection;
use crate::frang::following::{self, Followed};
use crate::local::{Environment, Local, Shared};
use crate::log::{Errno, LogSender};
use crate::site::Site;
use crate::upstreams;
use crate::wakes::Doorbell;
use listeners::Listeners;
use mill_config::config::{ListeningSocket, LogLevel};
use mill_metrics::Board;
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::engine::{DrainListener, Engine, ListenerId, Orphans};
use mill_runtime::files::{Files, PoolLimits};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use mill_runtime::worker::{Pause, Worker};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

/// The arguments of a worker.
#[derive(Debug)]
pub struct WorkerSetup {
    pub index: u32,
    pub environment: Environment,
    pub inbox: Receiver<Order>,
    pub reports: Sender<Report>,
    pub logs: LogSender,
    /// Where all workers publish their counters, this one at number `index`.
    pub board: Board,
    /// How other threads end the sleep of its engine.
    pub doorbell: Doorbell,
}

/// An order to a worker. Its sender also wakes the engine.
#[derive(Debug)]
pub enum Order {
    /// Serve this site from now on, on exactly these listeners. The first order is of this kind.
    Adopt {
        site: Arc<Site>,
        listeners: Vec<Assigned>,
    },
    /// Accept the waiting connections, then no more; answer requests in progress; end after the last connection, or
    /// after this time.
    Drain { limit: Option<Duration> },
    /// The same for all workers of the process: one that gets frames for the others goes on until they have finished.
    DrainAll {
        limit: Option<Duration>,
        unfinished: Unfinished,
    },
    /// End now.
    Stop,
}

/// Counts a worker among those of a process that have not answered all of their requests, until it is dropped.
#[derive(Debug)]
pub struct Unfinished(Arc<AtomicU32>);

impl Unfinished {
    /// For so many workers.
    pub fn each(workers: usize) -> impl Iterator<Item = Self> {
        let count = Arc::new(AtomicU32::new(u32::try_from(workers).unwrap_or(u32::MAX)));
        core::iter::repeat_n(count, workers).map(Self)
    }

    fn count(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.0)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A listener that a worker serves: its index in the configuration, and its number among the sockets that share its
/// port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Its place among `Config::sockets`.
    pub listener: usize,
    pub share: Option<u32>,
}

/// A worker's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Adopted {
        index: u32,
        generation: u64,
    },
    /// It could not carry out an order, and goes on as before.
    Failed {
        index: u32,
        what: String,
    },
    /// It has ended.
    Ended {
        index: u32,
    },
}

/// Serves until it is stopped or has drained. Returns when the worker has ended.
pub fn run<E: DrainListener + Orphans + DatagramEngine>(engine: E, setup: WorkerSetup) {
    let mut turn = start(engine, setup);
    while turn() {}
}

/// A worker as a value: each call is one turn; false once it has ended. Waits for its first order, which names the site
/// to serve, before it returns.
pub fn start<E>(engine: E, setup: WorkerSetup) -> impl FnMut() -> bool
where
    E: DrainListener + Orphans + DatagramEngine,
{
    let WorkerSetup {
        index,
        environment,
        inbox,
        reports,
        logs,
        board,
        doorbell,
    } = setup;
    let mut run = first_site(&inbox).map(|(site, assigned)| {
        let (now, wall_clock) = engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        let shared = Shared {
            index,
            environment,
            logs,
            board: board.clone(),
            doorbell,
        };
        let local = Local::new(
            engine.clone(),
            Rc::clone(&scheduler),
            Arc::clone(&site),
            shared,
        );
        let listeners = Rc::new(Listeners::default());
        let accepted = {
            let (local, listeners) = (Rc::clone(&local), Rc::clone(&listeners));
            move |stream, id| connection::serve(stream, listeners.context(id), Rc::clone(&local))
        };
        let worker = Worker::new(engine, scheduler, accepted);
        let mut run = Run {
            worker,
            local,
            listeners,
            index,
            reports,
            closing: Vec::new(),
            following: None,
            probing: None,
            issuing: Vec::new(),
            keepers: Vec::new(),
            blocked: Followed::default(),
            sweeper: None,
            limit_logged_at: 0,
            drain_until: None,
            unfinished: None,
            others: None,
            ended: false,
        };
        run.sweeper = upstreams::sweeping::start(&run.local);
        run.adopt(&site, &assigned);
        run
    });
    move || {
        let Some(run) = &mut run else { return false };
        let Done { is_busy, may_count } = run.turn(&inbox);
        if let Some(place) = board.place(index) {
            let now = run.local.scheduler.now().as_nanos();
            place.show_turn(now, is_busy);
            // A worker that spins finds nothing most of the time.
            if may_count {
                place.show_server(&run.local.full_counters());
            }
        }
        if run.ended {
            run.end_background();
        }
        !run.ended
    }
}

/// The first order; one that serves nothing ends the worker.
fn first_site(inbox: &Receiver<Order>) -> Option<(Arc<Site>, Vec<Assigned>)> {
    match inbox.recv() {
        Ok(Order::Adopt { site, listeners }) => Some((site, listeners)),
        _ => None,
    }
}

/// What came of a turn.
struct Done {
    /// There was anything to do.
    is_busy: bool,
    /// Counters may have changed.
    may_count: bool,
}

/// A running worker.
struct Run<E: Engine, F, Accepted> {
    worker: Worker<E, F, Accepted>,
    local: Rc<Local<E>>,
    listeners: Rc<Listeners>,
    index: u32,
    reports: Sender<Report>,
    /// Listeners that are removed once the connections waiting in their queues are accepted.
    closing: Vec<ListenerId>,
    /// The task that keeps those which follow the names of the site's servers.
    following: Option<TaskId>,
    /// The task that keeps those which probe the site's servers.
    probing: Option<TaskId>,
    /// The tasks that order the site's certificates, fetch answers of OCSP, sweep its caches, and end blocks.
    issuing: Vec<TaskId>,
    /// The tasks of caches' folders, which outlive configurations.
    keepers: Vec<TaskId>,
    /// What the engine knows of blocked addresses.
    blocked: Followed,
    /// The task that closes idle connections to upstream servers.
    sweeper: Option<TaskId>,
    /// The second in which the log last reported that the maximum of connections is reached.
    limit_logged_at: i64,
    /// Set while draining: the latest end.
    drain_until: Option<Instant>,
    /// In a process that drains: this worker has not finished …
    unfinished: Option<Unfinished>,
    /// … and how many of all have not.
    others: Option<Arc<AtomicU32>>,
    ended: bool,
}

impl<E, F, Accepted> Run<E, F, Accepted>
where
    E: DrainListener + Orphans,
    F: Future<Output = ()>,
    Accepted: FnMut(E::Stream, ListenerId) -> F,
{
    fn turn(&mut self, inbox: &Receiver<Order>) -> Done {
        self.local.tls.begin_turn();
        self.local.wakes.begin_turn();
        let now = self.local.scheduler.now();
        self.blocked.follow(&self.local.engine, now);
        let turn = self.worker.turn();
        self.local.wakes.pass_on(&self.local.scheduler);
        // Idle connections have seen the request to make room.
        self.local.ask_for_room(0);
        if turn.mail {
            self.read_mail(inbox);
        }
        if !self.closing.is_empty() {
            self.close_what_can_be();
        }
        self.on_pause(turn.paused);
        let has_lost = self.local.hand_over_logs();
        self.end_if_drained();
        Done {
            is_busy: turn.is_busy,
            may_count: turn.is_busy || turn.mail || has_lost || self.ended,
        }
    }

    fn read_mail(&mut self, inbox: &Receiver<Order>) {
        loop {
            match inbox.try_recv() {
                Ok(order) => self.carry_out(order),
                Err(TryRecvError::Empty) => return,
                // The orders' sender is gone: the process is exiting.
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Adopt { site, listeners } => self.adopt(&site, &listeners),
            Order::Drain { limit } => self.drain(limit),
            Order::DrainAll { limit, unfinished } => {
                self.others = Some(unfinished.count());
                self.unfinished = Some(unfinished);
                self.drain(limit);
            }
            Order::Stop => self.ended = true,
        }
    }

    /// Opens new listeners, keeps the others, and closes removed ones after accepting their waiting connections.
    fn adopt(&mut self, site: &Arc<Site>, assigned: &[Assigned]) {
        let configured: Vec<ListeningSocket<'_>> = site.config.sockets().collect();
        let mut wanted = Vec::new();
        for assigned in assigned {
            if let Some(socket) = configured.get(assigned.listener) {
                wanted.push((assigned.listener, listen_options(socket, assigned.share)));
            }
        }
        self.local.set_site(Arc::clone(site));
        self.blocked.adopt(site.frang.as_ref());
        self.follow_servers(site);
        let pool = site.config.main.thread_pool;
        self.local.engine.files().set_pool_limits(PoolLimits {
            threads_max: usize::try_from(pool.threads).unwrap_or(usize::MAX),
            queue_max: usize::try_from(pool.max_queue).unwrap_or(usize::MAX),
        });
        let handshakes = site.config.events.handshakes_per_turn;
        (self.local.tls).set_handshakes_per_turn(usize::try_from(handshakes).unwrap_or(usize::MAX));
        let connections = site.config.events.worker_connections;
        self.worker
            .set_tasks_max(usize::try_from(connections).unwrap_or(usize::MAX));
        let mut kept = Vec::new();
        for (listener, options) in wanted {
            match self.listener(site, listener, options) {
                Ok(entry) => kept.push(entry),
                Err(what) => self.report(Report::Failed {
                    index: self.index,
                    what,
                }),
            }
        }
        let gone = std::mem::replace(&mut *self.listeners.0.borrow_mut(), kept);
        for entry in gone {
            self.close(entry);
        }
        self.worker.wake_all();
        self.report(Report::Adopted {
            index: self.index,
            generation: site.generation,
        });
    }

    /// Ends the tasks that would keep the worker's state alive.
    fn end_background(&mut self) {
        let tasks = [
            self.following.take(),
            self.probing.take(),
            self.sweeper.take(),
        ];
        let lists = self.issuing.drain(..).chain(self.keepers.drain(..));
        for task in tasks.into_iter().flatten().chain(lists) {
            self.local.scheduler.end(task);
        }
    }

    /// One worker follows the names of servers, probes these, orders certificates, and sweeps caches, for all workers.
    fn follow_servers(&mut self, site: &Arc<Site>) {
        for task in [self.following.take(), self.probing.take()]
            .into_iter()
            .flatten()
            .chain(self.issuing.drain(..))
        {
            self.local.scheduler.end(task);
        }
        if self.index == 0 {
            self.following = upstreams::following::start(&self.local, site);
            self.probing = upstreams::probing::start(&self.local, site);
            self.issuing = acme::start(&self.local, site);
            self.issuing
                .extend(site.tls.start_stapling(&self.local, site));
            self.issuing
                .extend(cache::sweeping::start(&self.local, site));
            let zones = site.caches.iter();
            self.keepers
                .extend(zones.flat_map(|zone| cache::disk::start(zone, &self.local)));
            self.issuing
                .extend(following::start(&self.local, site.frang.as_ref()));
        }
    }

    fn drain(&mut self, limit: Option<Duration>) {
        self.local.draining.set(true);
        let probing = self.probing.take().into_iter();
        for task in probing.chain(self.issuing.drain(..)) {
            self.local.scheduler.end(task);
        }
        self.closing = self
            .listeners
            .0
            .borrow()
            .iter()
            .map(|entry| entry.id)
            .collect();
        self.close_what_can_be();
        let now = self.local.scheduler.now();
        self.local.drain_grace_until.set(now + DRAIN_GRACE);
        let until = limit.map_or(Instant::FAR, |limit| now + limit);
        self.drain_until = Some(until);
        self.worker.set_alarm(until);
        self.worker.wake_all();
    }

    fn end_if_drained(&mut self) {
        let Some(until) = self.drain_until else {
            return;
        };
        let spawned = self.local.scheduler.spawned().finishing;
        let served = self.worker.tasks() == 0 && spawned == 0 && self.closing.is_empty();
        let now = self.local.scheduler.now();
        let is_late = now >= until;
        if is_late || (served && !self.worker.engine().has_lingering_orphans()) {
            self.unfinished = None;
            self.ended = is_late || !self.is_needed();
            if !self.ended {
                // The others end without a word.
                self.worker.set_alarm(until.min(now + LOOK_INTERVAL));
            }
        }
        if self.ended {
            self.report(Report::Ended { index: self.index });
        }
    }

    /// Whether frames of other workers' connections come to this one, as after QUIT without a successor: answers of servers to
    /// connections that any of them has opened.
    fn is_needed(&self) -> bool {
        let others = self.others.as_ref();
        others.is_some_and(|others| others.load(Ordering::Acquire) > 0)
            && self.worker.engine().carries_for_others()
    }

    fn on_pause(&mut self, paused: Option<Pause>) {
        let Some(pause) = paused else { return };
        let mut counters = self.local.counters.borrow_mut();
        counters.accept_pauses += 1;
        drop(counters);
        match pause {
            Pause::Exhausted(code) => self.local.log_error(
                None,
                LogLevel::Crit,
                format_args!(
                    "accept4() failed ({}); accepting pauses, raise worker_rlimit_nofile",
                    Errno(code)
                ),
            ),
            Pause::Limit => self.make_room(),
        }
    }

    /// Closes some idle connections, as nginx does, or logs that there are none.
    fn make_room(&mut self) {
        let limit = self.local.site().config.events.worker_connections;
        let second = self.local.scheduler.wall_clock().seconds;
        let tell = std::mem::replace(&mut self.limit_logged_at, second) != second;
        if self.local.counters.borrow().connections_waiting == 0 {
            let text = format_args!("{limit} worker_connections are not enough");
            if tell {
                self.local.log_error(None, LogLevel::Alert, text);
            }
            return;
        }
        let text = format_args!("{limit} worker_connections are not enough, reusing connections");
        if tell {
            self.local.log_error(None, LogLevel::Warn, text);
        }
        self.local.ask_for_room((limit / ROOM_SHARE).max(ROOM_MIN));
        self.worker.wake_all();
    }

    /// There is no receiver only when the process is exiting.
    fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

/// How often a worker that has finished looks whether the others have.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How long an idle kept connection stays open when draining begins. A request that its client has sent by then, and
/// that is still in flight through a network or through the process that has the device now, is answered; if the
/// connection closed at once, the request would be lost. Longer than most round trips, and than a busy machine delays a
/// process; and short enough for an upgrade.
const DRAIN_GRACE: Duration = Duration::from_millis(100);

/// How many idle connections are closed at the maximum of connections: this many, or this share of them. All
/// connections are polled for it, so a share keeps the cost of a new connection constant.
const ROOM_MIN: u32 = 32;
const ROOM_SHARE: u32 = 64;
