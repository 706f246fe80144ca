//! The state that the connections of one thread share.

use crate::arrivals::Schedule;
use crate::failure::Failure;
use crate::head_memory::HeadMemory;
use crate::multiplexing::Multiplexing;
use crate::origin::Accepted;
use crate::pacer::Pacer;
use crate::plan::Arrivals;
use crate::plan::{Opening, Pace, Plan, Share};
use crate::random::Random;
use crate::record::Record;
use crate::request::RequestSource;
use crate::silence::Quiet;
use crate::source::SourceChoice;
use crate::tally::Tally;
use crate::turnstile::Turnstile;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use mill_tls::worker::TlsWorker;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// One thread's plan, clock, schedules and records. Never borrowed across an await.
#[derive(Debug)]
pub(crate) struct Local<E: Engine, R> {
    pub(crate) engine: E,
    pub(crate) scheduler: Rc<Scheduler>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) share: Share,
    pub(crate) begin: Instant,
    pub(crate) pacer: Pacer,
    /// Each connection passes it once, before it is first opened.
    pub(crate) openings: Turnstile,
    /// Connections that wait for an arrival, the longest first.
    idle: RefCell<VecDeque<TaskId>>,
    /// Arrivals that were given to some of them since, in the order in which they run.
    granted: RefCell<VecDeque<(TaskId, Instant)>>,
    pub(crate) schedules: RefCell<Schedules>,
    pub(crate) memory: RefCell<Memory<R>>,
    pub(crate) requests: RefCell<RequestSource>,
    pub(crate) heads: RefCell<HeadMemory>,
    pub(crate) sources: RefCell<SourceChoice>,
    /// Requests that this thread may still start.
    pub(crate) budget: Cell<Option<u64>>,
    /// Why the whole run is to end.
    pub(crate) aborted: RefCell<Option<Abort>>,
    /// Connections of the thread's own server.
    pub(crate) accepted: Accepted,
    pub(crate) tls: TlsWorker,
    /// Connections of HTTP/2.
    pub(crate) multiplexed: Multiplexing<E>,
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abort {
    /// A failure after which the plan does not go on.
    Failure(Failure),
    /// A script's error.
    Script(String),
    /// A script stopped its thread: no error.
    Stopped,
}

/// The connections' schedules and random numbers.
#[derive(Debug)]
pub(crate) struct Schedules {
    pub(crate) requests: Option<Schedule>,
    pub(crate) openings: Option<Schedule>,
    pub(crate) random: Random,
    /// Nothing is due from here on, even in a turn that began before.
    end: Instant,
}

/// What is counted and recorded.
#[derive(Debug)]
pub(crate) struct Memory<R> {
    pub(crate) recorder: R,
    pub(crate) tally: Tally,
    /// The tally when the measured period began.
    pub(crate) tally_before: Tally,
    pub(crate) measuring: bool,
    /// The expected content of answers of status 200 (`Plan::expected`).
    pub(crate) expected: Option<Arc<[u8]>>,
    /// When the measured period began.
    began: Instant,
    pub(crate) quiet: Quiet,
    /// The longest time from a request's start to its answer.
    pub(crate) longest: Duration,
    /// Connections that were dropped while they waited for an answer: at most one each of the plan.
    pub(crate) left: Vec<Left>,
}

/// A connection that was waiting when it was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) waiting_from: Instant,
    /// Its last request had failed.
    pub(crate) has_failed: bool,
}

impl<R> Memory<R> {
    fn new((recorder, expected): (R, Option<Arc<[u8]>>), begin: Instant) -> Self {
        Self {
            recorder,
            tally: Tally::default(),
            tally_before: Tally::default(),
            measuring: false,
            expected,
            began: begin,
            quiet: Quiet::new(begin),
            longest: Duration::ZERO,
            left: Vec::new(),
        }
    }

    /// Adds time of a connection in which it could not be served; time before the measured period does not count.
    pub(crate) fn lose(&mut self, from: Instant, until: Instant) {
        let lost = until.since(from.max(self.began)).as_micros();
        self.tally.lost_us += u64::try_from(lost).unwrap_or(u64::MAX);
    }

    /// The run has ended, and all connections are dropped. Requests in progress are normal, unless they have waited for
    /// longer than any answer took. A thread that its script has stopped waits for nothing.
    pub(crate) fn end(&mut self, now: Instant, stopped: bool) {
        if stopped {
            self.left.clear();
            self.quiet.rest();
        }
        let usual = HANGING_MIN.max(self.longest * HANGING_TIMES);
        for left in core::mem::take(&mut self.left) {
            let hangs = !left.has_failed && now.since(left.waiting_from) >= usual;
            self.tally.hanging += u64::from(hangs);
            if left.has_failed || hangs {
                self.lose(left.waiting_from, now);
            }
        }
    }

    /// Discards the warm-up.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.measuring = true;
        self.tally_before = self.tally;
        self.tally.open_max = self.tally.open;
        self.began = now;
        self.quiet.restart(now);
    }

    /// The counts of the measured period: zero before it has begun, except for levels.
    pub(crate) fn measured(&self) -> Tally {
        if self.measuring {
            self.tally.since(&self.tally_before)
        } else {
            Tally {
                open: self.tally.open,
                open_max: self.tally.open,
                ..Tally::default()
            }
        }
    }
}

impl<E: Engine, R: Record> Local<E, R> {
    pub(crate) fn new(
        engine: E,
        scheduler: Rc<Scheduler>,
        (plan, share): (Arc<Plan>, Share),
        begin: Instant,
        requests: RequestSource,
        recorder: R,
    ) -> Self {
        let place = (share.thread, plan.threads);
        let expected = plan.expected.clone();
        Self {
            schedules: RefCell::new(Schedules::new(&plan, &share, begin)),
            sources: RefCell::new(SourceChoice::new(plan.sources.clone(), place.0, place.1)),
            budget: Cell::new(share.requests),
            engine,
            scheduler,
            plan,
            share,
            begin,
            pacer: Pacer::default(),
            openings: Turnstile::new(OPENINGS_PER_TURN),
            idle: RefCell::default(),
            granted: RefCell::default(),
            memory: RefCell::new(Memory::new((recorder, expected), begin)),
            requests: RefCell::new(requests),
            heads: RefCell::default(),
            aborted: RefCell::new(None),
            accepted: Accepted::default(),
            tls: TlsWorker::new(),
            multiplexed: Multiplexing::default(),
        }
    }

    /// Takes the right to start one request; false when all have been started, or the run is about to end.
    pub(crate) fn take_budget(&self) -> bool {
        if self.aborted.borrow().is_some() {
            return false;
        }
        match self.budget.get() {
            None => true,
            Some(0) => false,
            Some(left) => {
                self.budget.set(Some(left - 1));
                true
            }
        }
    }

    /// Takes the next arrival of the open loop, waiting for it if it is not due yet.
    pub(crate) async fn arrival(&self) -> Option<Instant> {
        let now = self.scheduler.now();
        if let Some(due) = self.schedules.borrow_mut().take_due(now) {
            // Idle connections get due arrivals before any task runs, so this arrival waited for a connection.
            self.count_wait(now.since(due));
            return self.take_budget().then_some(due);
        }
        self.idle.borrow_mut().push_back(self.scheduler.current());
        let due = poll_fn(|_| self.take_granted()).await;
        self.take_budget().then_some(due)
    }

    /// The arrival that the current task was given, usually the first of all.
    fn take_granted(&self) -> Poll<Instant> {
        let task = self.scheduler.current();
        let mut granted = self.granted.borrow_mut();
        let place = granted.iter().position(|(to, _)| *to == task);
        let taken = place.and_then(|place| granted.remove(place));
        taken.map_or(Poll::Pending, |(_, due)| Poll::Ready(due))
    }

    /// Counts a request that was due `waited` before any connection was idle for it.
    pub(crate) fn count_wait(&self, waited: Duration) {
        let is_late = waited > Duration::from_millis(1) && self.budget.get() != Some(0);
        self.memory.borrow_mut().tally.waited_1ms += u64::from(is_late);
    }

    /// Gives due arrivals to idle connections, the longest idle first.
    pub(crate) fn grant(&self, now: Instant) {
        let (mut schedules, mut idle) = (self.schedules.borrow_mut(), self.idle.borrow_mut());
        while !idle.is_empty() {
            let Some(due) = schedules.take_due(now) else {
                return;
            };
            if let Some(task) = idle.pop_front() {
                self.granted.borrow_mut().push_back((task, due));
                self.scheduler.wake(task);
            }
        }
    }

    /// When an idle connection has to be woken next.
    pub(crate) fn next_grant(&self) -> Instant {
        if self.idle.borrow().is_empty() {
            return Instant::FAR;
        }
        self.schedules.borrow().next_due()
    }

    /// Ends the whole run; the first reason counts.
    pub(crate) fn abort(&self, reason: Abort) {
        self.aborted.borrow_mut().get_or_insert(reason);
    }
}

impl Schedules {
    fn new(plan: &Plan, share: &Share, begin: Instant) -> Self {
        let mut random = Random::new(plan.seed ^ (u64::from(share.thread) << 32));
        let place = (share.thread, plan.threads);
        let threads = f64::from(plan.threads.max(1));
        let requests = match plan.pace {
            Pace::Open { rate, arrivals } => Some(Schedule::new(
                begin,
                rate / threads,
                arrivals,
                place,
                &mut random,
            )),
            Pace::Closed { .. } | Pace::Each { .. } => None,
        };
        let openings = match plan.opening {
            Opening::Rate(rate) => Some(Schedule::new(
                begin,
                rate / threads,
                Arrivals::Uniform,
                place,
                &mut random,
            )),
            Opening::Together | Opening::Staggered(_) | Opening::Ramp(_) => None,
        };
        Self {
            requests,
            openings,
            random,
            end: plan.end(begin),
        }
    }

    /// When the next request is due, [`Instant::FAR`] if none is before the end.
    fn next_due(&self) -> Instant {
        let next = self.requests.as_ref().map(Schedule::next);
        next.filter(|next| *next < self.end).unwrap_or(Instant::FAR)
    }

    fn take_due(&mut self, now: Instant) -> Option<Instant> {
        if self.next_due() > now {
            return None;
        }
        Some(self.requests.as_mut()?.take(&mut self.random))
    }
}

/// Connections that are opened in a turn: requests that become due meanwhile are sent on open ones, and the end of a
/// run is noticed. Opening one takes some 20 µs on loopback, but half a millisecond if the kernel has to search long
/// for a port (more than half of them in use): 19 000 at once would take ten seconds.
const OPENINGS_PER_TURN: usize = 128;

/// A request that waits at the end for less than this is in progress, whatever others took.
const HANGING_MIN: Duration = Duration::from_secs(1);

/// A request hangs if it has waited so many times longer than the longest answer took.
const HANGING_TIMES: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Endpoint;

    /// A turn that begins before the end may poll its tasks after it.
    #[test]
    fn nothing_is_due_at_the_end_or_after_it() {
        let begin = Instant::from_nanos(1_000_000_000);
        let mut plan = Plan::new(Endpoint::example());
        plan.pace = Pace::Open {
            rate: 10.0,
            arrivals: Arrivals::Uniform,
        };
        plan.stop.after = Some(Duration::from_secs(1));
        let share = plan.shares().next().expect("one thread");
        let mut schedules = Schedules::new(&plan, &share, begin);
        let late = begin + Duration::from_secs(2);
        let taken = std::iter::from_fn(|| schedules.take_due(late)).count();
        assert_eq!((taken, schedules.next_due()), (10, Instant::FAR));
    }
}
