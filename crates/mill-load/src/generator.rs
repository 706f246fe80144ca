//! One thread of a run: its worker, its connections, its turns.

use crate::connection::{self, Task};
use crate::local::{Abort, Local};
use crate::origin;
use crate::plan::{Plan, Share};
use crate::record::Record;
use crate::request::{RequestSource, Requests, Script};
use crate::silence::Gap;
use crate::tally::Tally;
use mill_runtime::engine::{Engine, ListenerId};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::{Duration, Instant};
use mill_runtime::worker::Worker;
use std::rc::Rc;
use std::sync::Arc;

/// A thread's generator, run turn by turn by the thread's owner.
pub struct Generator<E: Engine, R, F> {
    worker: Worker<E, F, Accepted<E, F>>,
    local: Rc<Local<E, R>>,
    /// When the measured period begins and, if time ends it, ends.
    measure_from: Instant,
    end: Instant,
    next_cut: Instant,
}

/// Makes the task of a connection that the thread's own server accepts.
type Accepted<E, F> = Box<dyn FnMut(<E as Engine>::Stream, ListenerId) -> F>;

impl<E: Engine, R, F> core::fmt::Debug for Generator<E, R, F> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = formatter.debug_struct("Generator");
        shown.field("end", &self.end).finish_non_exhaustive()
    }
}

/// The result of a turn.
#[derive(Debug)]
pub enum Progress<I> {
    Running,
    /// An interval has passed.
    Interval(I),
    Ended,
}

/// A thread's results.
#[derive(Debug)]
pub struct Part<R> {
    pub recorder: R,
    /// Of the measured period.
    pub tally: Tally,
    /// From the beginning of the measured period to the end.
    pub measured: Duration,
    /// When no request was answered, in the order of time.
    pub gaps: Vec<Gap>,
    /// The longest time from a request's start to its answer.
    pub longest: Duration,
    /// Why it ended early, if it did.
    pub aborted: Option<Abort>,
    pub script: Option<Box<dyn Script>>,
}

/// Makes the generator of one thread, whose schedule begins at `begin`. Opens nothing before its first turn.
pub fn generator<E: Engine, R: Record>(
    engine: E,
    (plan, share): (Arc<Plan>, Share),
    begin: Instant,
    requests: Requests,
    recorder: R,
) -> Generator<E, R, impl Future<Output = ()>> {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let requests = RequestSource::new(requests, (share.thread, plan.threads));
    // Each request at once has a task; those of a connection are next to each other.
    let per_connection = plan.per_connection();
    let slots = share.connections.start * per_connection..share.connections.end * per_connection;
    let measure_from = begin + plan.warm_up;
    let end = plan.end(begin);
    let next_cut = measure_from + plan.interval;
    let answering = origin::answering(&engine, &scheduler, plan.origin);
    let local = Rc::new(Local::new(
        engine.clone(),
        Rc::clone(&scheduler),
        (plan, share),
        begin,
        requests,
        recorder,
    ));
    if measure_from == begin {
        // What a late thread does belongs to the measured period too.
        local.begin_measuring(begin);
    }
    let shared = Rc::clone(&local);
    let accepted = move |stream, _| {
        shared.accepted.push(answering(stream));
        connection::run(Rc::clone(&shared), Task::Answers)
    };
    let mut worker = Worker::new(engine, scheduler, Box::new(accepted) as Accepted<E, _>);
    for number in slots {
        worker.spawn(connection::run(Rc::clone(&local), Task::Sends(number)));
    }
    Generator {
        worker,
        local,
        measure_from,
        end,
        next_cut,
    }
}

impl<E: Engine, R: Record, F: Future<Output = ()>> Generator<E, R, F> {
    /// Has the thread answer requests too, as [`Plan::origin`] says.
    pub fn add_listener(&mut self, listener: ListenerId) {
        self.worker.add_listener(listener);
    }

    /// One turn of the worker, begun at `now`; waits at most until `wake_at`.
    pub fn turn(&mut self, now: Instant, wake_at: Instant) -> Progress<R::Interval> {
        let local = &self.local;
        if now >= self.end || self.is_over() {
            return Progress::Ended;
        }
        if now >= self.measure_from {
            local.begin_measuring(now);
            if now >= self.next_cut {
                return Progress::Interval(self.cut(now));
            }
        }
        local.pacer.release(&local.scheduler, now);
        local.openings.admit(&local.scheduler);
        local.grant(now);
        let precise = local.pacer.next().min(local.next_grant()) - local.plan.spin;
        let next_phase = if now < self.measure_from {
            self.measure_from
        } else {
            self.next_cut
        };
        let alarm = precise.min(next_phase).min(self.end).min(wake_at);
        self.worker.set_alarm(alarm);
        self.worker.turn();
        Progress::Running
    }

    /// Ends the run: requests in progress stay unfinished.
    pub fn finish(self) -> Part<R> {
        let now = self.local.engine.now();
        drop(self.worker);
        let Ok(local) = Rc::try_unwrap(self.local) else {
            unreachable!("the worker's tasks, now dropped, had the only other handles");
        };
        let mut memory = local.memory.into_inner();
        let mut schedules = local.schedules.into_inner();
        let budget = local.budget.get().unwrap_or(u64::MAX);
        if let Some(mut schedule) = schedules.requests.take()
            && memory.measuring
        {
            let due = schedule.count_until(self.end.min(now), &mut schedules.random);
            memory.tally.never_started = due.min(budget);
        }
        let aborted = local.aborted.into_inner();
        memory.end(now, aborted == Some(Abort::Stopped));
        Part {
            tally: memory.measured(),
            gaps: memory.quiet.finish(),
            longest: memory.longest,
            recorder: memory.recorder,
            // The answers of a long last turn were counted, so its time counts too.
            measured: now.since(self.measure_from),
            aborted,
            script: local.requests.into_inner().into_script(),
        }
    }

    /// Until when the thread is idle and still part of the run: its script has stopped it, and the run lasts for its
    /// time (wrk).
    pub fn rests_until(&self) -> Option<Instant> {
        let stopped = matches!(*self.local.aborted.borrow(), Some(Abort::Stopped));
        (stopped && self.end != Instant::FAR).then_some(self.end)
    }

    /// What has been counted so far in the measured period.
    pub fn tally(&self) -> Tally {
        self.local.memory.borrow().measured()
    }

    /// Whether nothing that counts can happen any more, whatever connections still wait for.
    fn is_over(&self) -> bool {
        let used_up = self.local.budget.get() == Some(0);
        let all_finished = || self.local.memory.borrow().tally.unfinished() == 0;
        let all_gave_up = self.local.plan.stop.after.is_none() && self.worker.tasks() == 0;
        self.local.aborted.borrow().is_some() || (used_up && all_finished()) || all_gave_up
    }

    fn cut(&mut self, now: Instant) -> R::Interval {
        let interval = self.local.plan.interval.max(INTERVAL_MIN);
        while self.next_cut <= now {
            self.next_cut = self.next_cut + interval;
        }
        let mut memory = self.local.memory.borrow_mut();
        let tally = memory.measured();
        memory.recorder.cut(now, &tally)
    }
}

impl<E: Engine, R: Record> Local<E, R> {
    /// Discards the warm-up, once.
    fn begin_measuring(&self, now: Instant) {
        let memory = &mut *self.memory.borrow_mut();
        if !memory.measuring {
            memory.begin_measuring(now);
            memory.recorder.on_begin(now);
        }
    }
}

/// The shortest interval between two cuts: an interval of zero would never let a turn run.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
