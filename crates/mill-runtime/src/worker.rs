//! The turn of a core: poll, accept, expire timers, run ready tasks, settle, park.

use crate::engine::{Accept, DrainListener, Engine, Events, ListenerId, Park};
use crate::files::Files;
use crate::scheduler::Scheduler;
use crate::tasks::{Due, Polled, TaskId, Tasks};
use crate::time::{Duration, Instant};
use crate::timer::TimerWheel;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::future::Future;
use core::task::{Context, Waker};

/// One core's worker: an engine, and the tasks that run over it. `Accepted` makes the task of a new connection.
#[derive(Debug)]
pub struct Worker<E, F, Accepted> {
    engine: E,
    scheduler: Rc<Scheduler>,
    tasks: Tasks<F>,
    timers: TimerWheel,
    /// Tasks spawned by other tasks, which have slots of their own.
    spawned_timers: TimerWheel,
    events: Events,
    /// Tasks that are polled in a further round of this turn; kept for its capacity.
    round: Vec<TaskId>,
    accepted: Accepted,
    accepting: Accepting,
    /// Timer entries whose deadline was moved on; empty between turns, kept for its capacity.
    moved_on: Vec<(u32, Instant)>,
    /// When a turn returns although nothing has happened.
    alarm: Instant,
    turn: u32,
}

/// A worker all of whose tasks are spawned: it connects and never listens.
pub type ConnectingWorker<E, F> = Worker<E, F, fn(<E as Engine>::Stream, ListenerId) -> F>;

/// What the caller has to know after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Another thread has a message for this worker.
    pub mail: bool,
    /// Accepting paused in this turn, for this reason.
    pub paused: Option<Pause>,
    /// There was work: a task to run or a connection to accept.
    pub is_busy: bool,
}

/// Why a worker accepts no connections for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The engine has no descriptor or memory left; the operating system's error number.
    Exhausted(i32),
    /// The worker has as many connections as it may have.
    Limit,
}

/// The bounds of accepting, and whether it pauses.
#[derive(Debug)]
struct Accepting {
    listeners: Vec<ListenerId>,
    tasks_max: usize,
    paused: Option<Pause>,
    resume_at: Instant,
    /// How many connections the next visit to a listener takes at the most; follows the load, so that few calls find
    /// no connection.
    batch: usize,
}

impl<E, F, Accepted> Worker<E, F, Accepted>
where
    E: Engine,
    F: Future<Output = ()>,
    Accepted: FnMut(E::Stream, ListenerId) -> F,
{
    /// `accepted` is called for each new connection and returns its task.
    pub fn new(engine: E, scheduler: Rc<Scheduler>, accepted: Accepted) -> Self {
        engine.files().set_scheduler(&scheduler);
        let timers = TimerWheel::new(scheduler.now());
        let spawned_timers = TimerWheel::new(scheduler.now());
        Self {
            engine,
            scheduler,
            tasks: Tasks::new(),
            timers,
            spawned_timers,
            events: Events::default(),
            round: Vec::new(),
            accepted,
            accepting: Accepting::new(),
            moved_on: Vec::new(),
            alarm: Instant::FAR,
            turn: 0,
        }
    }

    /// One turn: handles everything that is ready now; waits first if nothing is.
    pub fn turn(&mut self) -> Turn {
        self.next_turn();
        self.events.clear();
        let park = self.park();
        // The tasks that yielded to this turn run first, not behind everything that the engine reports.
        self.scheduler.drain_woken(&mut self.events.ready);
        let (now, wall_clock) = self.engine.poll(park, &mut self.events);
        self.scheduler.set_time(now, wall_clock);

        self.expire_timers(now);
        self.resume_accepting(now);
        let paused = self.accept();
        self.run_ready();
        let rounds = self.run_woken_soon();
        self.engine.settle();
        let is_idle = self.events.ready.is_empty() && self.events.acceptable.is_empty();
        Turn {
            mail: self.events.mail,
            paused,
            is_busy: !is_idle || rounds > 0,
        }
    }

    /// Adds a task that is not an accepted connection's; it is polled first in the next turn, which does not wait.
    /// The task learns its id from [`Scheduler::current`]. Costs no allocation where a task has ended before.
    pub fn spawn(&mut self, future: F) -> TaskId {
        let task = self.tasks.reserve();
        self.tasks.start(task, future);
        self.scheduler.wake(task);
        task
    }

    /// Accepts connections of a listener from now on.
    pub fn add_listener(&mut self, listener: ListenerId) {
        self.accepting.listeners.push(listener);
        self.engine
            .set_accepting(listener, self.accepting.paused.is_none());
    }

    /// Accepts all connections that wait at a listener and then closes it. False if connections are left that could
    /// not be accepted for want of descriptors, or are expected: the listener stays open, try again in a later turn.
    #[must_use]
    pub fn close_listener(&mut self, listener: ListenerId) -> bool
    where
        E: DrainListener,
    {
        self.next_turn();
        let is_drained = self.engine.drain_listener(listener);
        let is_empty = loop {
            match self.accept_one(listener) {
                Taken::One => {}
                Taken::None => break true,
                Taken::Exhausted(_) => break false,
            }
        };
        let closed = is_drained && is_empty;
        if closed {
            self.accepting.listeners.retain(|other| *other != listener);
            self.engine.close_listener(listener);
        }
        self.engine.settle();
        closed
    }

    /// How many tasks may live before accepting pauses.
    pub fn set_tasks_max(&mut self, tasks_max: usize) {
        self.accepting.tasks_max = tasks_max;
    }

    /// Has every task polled in the next turn, after a change that concerns all.
    pub fn wake_all(&mut self) {
        for task in self.tasks.ids() {
            self.scheduler.wake(task);
        }
        for task in self.scheduler.spawned.ids() {
            self.scheduler.wake(task);
        }
    }

    /// Has a turn that waits return at `at`, also without an event.
    pub fn set_alarm(&mut self, at: Instant) {
        self.alarm = at;
    }

    /// How many tasks live that were not spawned by others ([`Scheduler::spawned`] counts those).
    pub fn tasks(&self) -> usize {
        self.tasks.count()
    }

    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Turn 0 is never run: it marks a slot whose task was not polled yet.
    fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1).max(1);
    }

    fn park(&self) -> Park {
        if self.scheduler.has_woken() || self.has_room_again() {
            return Park::No;
        }
        let expiry = |timers: &TimerWheel| timers.next_expiry().unwrap_or(Instant::FAR);
        let timer = expiry(&self.timers).min(expiry(&self.spawned_timers));
        let wait_until = timer.min(self.accepting.resume_at).min(self.alarm);
        if wait_until == Instant::FAR {
            Park::Forever
        } else {
            Park::Until(wait_until)
        }
    }

    /// Whether accepting, which paused at the limit of tasks, can go on. No event reports this: the last task may
    /// have ended in the turn before, or the limit may have been raised.
    fn has_room_again(&self) -> bool {
        self.accepting.paused == Some(Pause::Limit) && self.tasks.count() < self.accepting.tasks_max
    }

    fn expire_timers(&mut self, now: Instant) {
        let (ready, moved_on) = (&mut self.events.ready, &mut self.moved_on);
        let tasks = &mut self.tasks;
        expire(&mut self.timers, now, ready, moved_on, |number| {
            tasks.on_entry_due(number, now)
        });
        let spawned = &self.scheduler.spawned;
        expire(&mut self.spawned_timers, now, ready, moved_on, |number| {
            spawned.on_entry_due(number, now)
        });
    }

    fn resume_accepting(&mut self, now: Instant) {
        let resume = match self.accepting.paused {
            None => false,
            Some(Pause::Exhausted(_)) => now >= self.accepting.resume_at,
            Some(Pause::Limit) => self.has_room_again(),
        };
        if resume {
            self.accepting.paused = None;
            self.accepting.resume_at = Instant::FAR;
            for listener in &self.accepting.listeners {
                self.engine.set_accepting(*listener, true);
            }
        }
    }

    /// Accepts and starts connections that wait at the listeners; returns why it stopped, if it did.
    fn accept(&mut self) -> Option<Pause> {
        if self.accepting.paused.is_some() {
            return None;
        }
        let listeners = core::mem::take(&mut self.events.acceptable);
        for listener in &listeners {
            let is_free = self.engine.accepts_freely(*listener);
            let batch = if is_free {
                ACCEPT_BATCH_MAX
            } else {
                self.accepting.batch
            };
            let mut taken = 0;
            while taken < batch {
                if self.tasks.count() >= self.accepting.tasks_max {
                    // The next turn's report will say whether more connections wait.
                    if taken == 0 {
                        self.pause(Pause::Limit, Instant::FAR);
                    }
                    break;
                }
                match self.accept_one(*listener) {
                    Taken::One => taken += 1,
                    Taken::None => break,
                    Taken::Exhausted(code) => {
                        let resume_at = self.scheduler.now() + ACCEPT_PAUSE;
                        self.pause(Pause::Exhausted(code), resume_at);
                        break;
                    }
                }
            }
            if !is_free {
                self.accepting.adapt(taken);
            }
            if self.accepting.paused.is_some() {
                break;
            }
        }
        self.events.acceptable = listeners;
        self.accepting.paused
    }

    fn accept_one(&mut self, listener: ListenerId) -> Taken {
        let task = self.tasks.reserve();
        match self.engine.accept(listener, task) {
            Accept::Stream(stream) => {
                self.tasks.start(task, (self.accepted)(stream, listener));
                self.run(task);
                Taken::One
            }
            Accept::Aborted => {
                self.tasks.release(task);
                Taken::One
            }
            Accept::Empty => {
                self.tasks.release(task);
                Taken::None
            }
            Accept::Exhausted(code) => {
                self.tasks.release(task);
                Taken::Exhausted(code)
            }
        }
    }

    fn pause(&mut self, reason: Pause, resume_at: Instant) {
        self.accepting.paused = Some(reason);
        self.accepting.resume_at = resume_at;
        for listener in &self.accepting.listeners {
            self.engine.set_accepting(*listener, false);
        }
    }

    fn run_ready(&mut self) {
        let ready = core::mem::take(&mut self.events.ready);
        for task in &ready {
            self.run(*task);
        }
        self.events.ready = ready;
    }

    /// Polls the tasks that others have woken in this turn, and those that these wake, and so on; returns how many
    /// rounds there were. A task is polled once a round at most. A task that is woken in the last round waits for the
    /// next turn.
    fn run_woken_soon(&mut self) -> usize {
        for rounds in 0..ROUNDS_PER_TURN {
            if !self.scheduler.has_woken_soon() {
                return rounds;
            }
            self.next_turn();
            let mut round = core::mem::take(&mut self.round);
            self.scheduler.drain_woken_soon(&mut round);
            for task in round.drain(..) {
                self.run(task);
            }
            self.round = round;
        }
        ROUNDS_PER_TURN
    }

    fn run_spawned(&mut self, task: TaskId) {
        let scheduler = &*self.scheduler;
        scheduler.enter(task);
        let mut context = Context::from_waker(Waker::noop());
        let polled = scheduler.spawned.poll(task, self.turn, &mut context);
        let deadline = scheduler.leave();
        if polled == Polled::Pending
            && let Some(number) = scheduler.spawned.set_deadline(task, deadline)
        {
            self.spawned_timers.arm(number, deadline);
        }
    }

    fn run(&mut self, task: TaskId) {
        if task.is_spawned() {
            return self.run_spawned(task);
        }
        self.scheduler.enter(task);
        let polled = self
            .tasks
            .poll(task, self.turn, &mut Context::from_waker(Waker::noop()));
        let deadline = self.scheduler.leave();
        if polled == Polled::Pending
            && let Some(number) = self.tasks.set_deadline(task, deadline)
        {
            self.timers.arm(number, deadline);
        }
    }
}

impl<E, F> ConnectingWorker<E, F>
where
    E: Engine,
    F: Future<Output = ()>,
{
    /// A worker that gets its tasks from [`Worker::spawn`] alone. Its engine must not listen: there is no task
    /// for a connection that comes in.
    pub fn connecting(engine: E, scheduler: Rc<Scheduler>) -> Self {
        Self::new(engine, scheduler, |_, _| {
            unreachable!("an engine that never listens accepts nothing")
        })
    }
}

/// Spawned tasks hold the scheduler, which holds them: they end with their worker.
impl<E, F, Accepted> Drop for Worker<E, F, Accepted> {
    fn drop(&mut self) {
        self.scheduler.spawned.close();
    }
}

impl Accepting {
    fn new() -> Self {
        Self {
            listeners: Vec::new(),
            tasks_max: usize::MAX,
            paused: None,
            resume_at: Instant::FAR,
            batch: ACCEPT_BATCH_MIN,
        }
    }

    /// Doubles the batch when it was filled, else makes it what was there.
    fn adapt(&mut self, taken: usize) {
        self.batch = if taken >= self.batch {
            self.batch * 2
        } else {
            taken
        };
        self.batch = self.batch.clamp(ACCEPT_BATCH_MIN, ACCEPT_BATCH_MAX);
    }
}

/// Takes the entries of a wheel that are due; those of deadlines that were moved on are entered again.
fn expire(
    timers: &mut TimerWheel,
    now: Instant,
    ready: &mut Vec<TaskId>,
    moved_on: &mut Vec<(u32, Instant)>,
    mut on_entry_due: impl FnMut(u32) -> Due,
) {
    timers.expire(now, |number| match on_entry_due(number) {
        Due::Now(task) => ready.push(task),
        Due::Later(at) => moved_on.push((number, at)),
        Due::Stale => {}
    });
    for (number, at) in moved_on.drain(..) {
        timers.arm(number, at);
    }
}

/// The result of one call of accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    One,
    None,
    Exhausted(i32),
}

/// How many rounds of wake-ups among tasks a turn runs before the others have their turn.
const ROUNDS_PER_TURN: usize = 16;

/// How long accepting pauses when descriptors run out. nginx waits as long (its `accept_mutex_delay`).
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Connections taken in one visit to a listener: where each costs a call, as many as were waiting lately, so that few
/// calls find none. The most bounds how long the connections that a worker already has wait for their turn: 64 new
/// ones take about half a millisecond.
const ACCEPT_BATCH_MIN: usize = 1;
const ACCEPT_BATCH_MAX: usize = 64;

#[cfg(test)]
mod tests;
