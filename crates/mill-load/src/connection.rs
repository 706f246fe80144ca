//! One connection's loop: wait for the next start, connect if necessary, send, receive, record; again.

/// The first request with the first flight of TLS.
mod early;

use early::Early;

use crate::exchange::{connect, receive, secure, send};
use crate::failure::Failure;
use crate::local::{Abort, Left, Local};
use crate::multiplexing::{self, Found};
use crate::plan::{AfterFailure, Life, Opening, Pace};
use crate::record::Record;
use crate::request::Batch;
use crate::sample::Sample;
use core::task::Poll;
use mill_multiplex::Multiplexed;
use mill_multiplex::carrier::Carrier;
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_tls::facts::{EarlyData, TlsFacts};
use mill_tls::transport::TransportOf;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;

/// A connection slot of the plan: at most one stream at a time, one after the other.
struct Connection<E: Engine, R: Record> {
    local: Rc<Local<E, R>>,
    number: u32,
    stream: Option<Carrier<TransportOf<E>>>,
    /// Requests that the stream may still carry; `None` is unlimited.
    left: Option<u32>,
    /// Requests that were finished, for the schedule of [`Pace::Each`].
    finished: u64,
    /// Consecutive failed connects.
    failed_connects: u16,
    phase: Phase,
    /// When this phase began.
    since: Instant,
    /// Since when the connection lags behind its schedule, and `finished` then. Boxed: it is rare, and idle connections
    /// are many.
    behind: Option<Box<(Instant, u64)>>,
    /// Boxed: it is there while a connection is opened or closed.
    early: Option<Box<Early>>,
}

/// A connection that was opened.
struct Opened<E: Engine> {
    stream: TransportOf<E>,
    /// When TCP had established it.
    connected: Instant,
    /// When requests could be sent: behind the handshake of TLS, if there is one.
    at: Instant,
    facts: Option<Rc<TlsFacts>>,
}

/// The state of a connection between its awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No request is in progress.
    Idle,
    /// A request was answered, and the next one is started at once.
    Done,
    /// A request waits for its answer.
    Waiting,
    /// All requests since this phase began have failed.
    Failed,
}

impl Phase {
    fn waits(self) -> bool {
        matches!(self, Self::Waiting | Self::Failed)
    }

    /// The next request does not follow at once.
    fn rest(&mut self) {
        if *self == Self::Done {
            *self = Self::Idle;
        }
    }
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Sends the requests of this connection.
    Sends(u32),
    /// Answers on the connection that was accepted first.
    Answers,
}

/// Runs a connection until its budget is used up or it gives up. At the end of the run it is dropped.
pub(crate) async fn run<E: Engine, R: Record>(local: Rc<Local<E, R>>, task: Task) {
    let number = match task {
        Task::Sends(number) => number,
        Task::Answers => {
            if let Some(answers) = local.accepted.take() {
                answers.await;
            }
            return;
        }
    };
    let mut connection = Connection {
        local,
        number,
        stream: None,
        left: None,
        finished: 0,
        failed_connects: 0,
        phase: Phase::Idle,
        since: Instant::default(),
        behind: None,
        early: None,
    };
    connection.prepare().await;
    while let Some(intended) = connection.next_start().await {
        let exchanged = connection.exchange(intended).await;
        connection.finished += 1;
        if let Err(failure) = exchanged
            && connection.after(failure).await.is_break()
        {
            return;
        }
        if connection.early.is_some() {
            Box::pin(connection.close_behind_ticket()).await;
        }
    }
    connection.rest();
}

/// A connection that is dropped while it waits was abandoned, or has a request in progress when the run ends.
impl<E: Engine, R: Record> Drop for Connection<E, R> {
    fn drop(&mut self) {
        if self.phase.waits() {
            let left = Left {
                waiting_from: self.since,
                has_failed: self.phase == Phase::Failed,
            };
            self.local.memory.borrow_mut().left.push(left);
        }
    }
}

/// When to start.
impl<E: Engine, R: Record> Connection<E, R> {
    /// The number of the connection: several requests at once share one of HTTP/2.
    fn connection(&self) -> u32 {
        self.number / self.local.plan.per_connection()
    }

    /// Waits for the connection's turn in the opening; an open loop's connections are opened before their first request
    /// is due, so that its latency does not include connecting.
    async fn prepare(&mut self) {
        let (plan, share) = (&self.local.plan, &self.local.share);
        let place = self.connection() - share.connections.start;
        let offset = match plan.opening {
            Opening::Together | Opening::Rate(_) => Duration::ZERO,
            Opening::Staggered(gap) => gap.saturating_mul(place),
            Opening::Ramp(whole) => {
                whole.mul_f64(f64::from(self.connection()) / f64::from(plan.connections.max(1)))
            }
        };
        let at = self.local.begin + offset;
        self.local.pacer.until(&self.local.scheduler, at).await;
        self.local.openings.pass(&self.local.scheduler).await;
        let stays = plan.life != Life::Requests(1) && plan.streams.is_none();
        if matches!(self.local.plan.pace, Pace::Open { .. }) && stays {
            self.wait_for_opening().await;
            // A failure occurs again, and is counted, when the first request is due.
            let _ = self.open(self.deadline(self.local.scheduler.now())).await;
        }
    }

    /// Waits until the next request is due, and returns when that was; the closed loop's is due now. `None`: none is
    /// left.
    async fn next_start(&mut self) -> Option<Option<Instant>> {
        match self.local.plan.pace {
            Pace::Closed { think } => {
                let pause = self.pause(think)?;
                if !pause.is_zero() {
                    self.phase.rest();
                    let at = self.local.scheduler.now() + pause;
                    self.local.pacer.until(&self.local.scheduler, at).await;
                }
                if self.stream.is_none() && self.local.plan.streams.is_none() {
                    self.wait_for_opening().await;
                }
                self.local.take_budget().then_some(None)
            }
            Pace::Open { .. } => {
                if self.stream.is_none() && self.local.plan.streams.is_none() {
                    self.wait_for_opening().await;
                }
                self.local.arrival().await.map(Some)
            }
            Pace::Each { rate } => {
                let slots = self.local.plan.connections * self.local.plan.per_connection();
                let connections = f64::from(slots.max(1));
                let gap = Duration::from_secs(1).mul_f64(connections / rate.max(MIN_RATE));
                let due = self.begin_of_own() + mul(gap, self.finished);
                let now = self.local.scheduler.now();
                self.local.count_wait(now.since(due));
                let at = self.catch_up(due, now, gap);
                self.local.pacer.until(&self.local.scheduler, at).await;
                self.local.take_budget().then_some(Some(due))
            }
        }
    }

    /// When to start a request of the connection's own schedule: a connection that lags behind goes at most at twice
    /// its rate until it has caught up (wrk2).
    fn catch_up(&mut self, due: Instant, now: Instant, gap: Duration) -> Instant {
        if due > now {
            self.behind = None;
            return due;
        }
        let place = || Box::new((now, self.finished));
        let (since, finished) = **self.behind.get_or_insert_with(place);
        since + mul(gap / 2, self.finished - finished)
    }

    /// How long the closed loop waits before the next request; a script overrides the plan.
    fn pause(&self, think: Duration) -> Option<Duration> {
        if let Some(script) = self.local.requests.borrow_mut().script() {
            return match script.delay() {
                Ok(delay) => Some(delay),
                Err(error) => {
                    self.local.abort(Abort::Script(error.0));
                    None
                }
            };
        }
        Some(if self.finished == 0 {
            Duration::ZERO
        } else {
            think
        })
    }

    /// The beginning of this connection's own even schedule.
    fn begin_of_own(&self) -> Instant {
        let place = self.connection() - self.local.share.connections.start;
        match self.local.plan.opening {
            Opening::Staggered(gap) => self.local.begin + gap.saturating_mul(place),
            _ => self.local.begin,
        }
    }

    /// Waits for the next opening if their rate is limited.
    async fn wait_for_opening(&self) {
        let due = {
            let mut schedules = self.local.schedules.borrow_mut();
            let schedules = &mut *schedules;
            schedules.openings.as_mut().map(|openings| {
                openings.forget(self.local.scheduler.now() - OPENINGS_BURST);
                openings.take(&mut schedules.random)
            })
        };
        if let Some(due) = due {
            self.local.pacer.until(&self.local.scheduler, due).await;
        }
    }

    /// The deadline of a request that was started at `started`.
    fn deadline(&self, started: Instant) -> Instant {
        self.local
            .plan
            .timeout
            .map_or(Instant::FAR, |timeout| started + timeout)
    }

    /// The action after a failure.
    async fn after(&mut self, failure: Failure) -> ControlFlow<()> {
        self.close();
        let connecting = failure.kind().is_connecting();
        match self.local.plan.after_failure {
            AfterFailure::Abort => {
                self.local.abort(Abort::Failure(failure));
                ControlFlow::Break(())
            }
            AfterFailure::AbortOn(kinds) if kinds.contains(&failure.kind()) => {
                self.local.abort(Abort::Failure(failure));
                ControlFlow::Break(())
            }
            AfterFailure::GiveUpConnecting if failure.is_local() => ControlFlow::Break(()),
            AfterFailure::GiveUpConnecting | AfterFailure::AbortOn(_) if connecting => {
                self.local.scheduler.sleep(REFUSED_PAUSE).await;
                ControlFlow::Continue(())
            }
            AfterFailure::Retry { pause } if connecting => {
                let doublings = self.failed_connects.min(BACKOFF_DOUBLINGS_MAX);
                self.failed_connects = self.failed_connects.saturating_add(1);
                let pause = pause
                    .saturating_mul(1 << doublings)
                    .min(pause.saturating_mul(100))
                    .max(REFUSED_PAUSE);
                self.local.scheduler.sleep(pause).await;
                ControlFlow::Continue(())
            }
            AfterFailure::GiveUpConnecting
            | AfterFailure::Retry { .. }
            | AfterFailure::AbortOn(_) => ControlFlow::Continue(()),
        }
    }
}

/// One request and its response.
impl<E: Engine, R: Record> Connection<E, R> {
    async fn exchange(&mut self, intended: Option<Instant>) -> Result<(), Failure> {
        let is_at_once = intended.is_none() && self.phase == Phase::Done;
        let started = if is_at_once {
            self.since
        } else {
            self.local.engine.now()
        };
        let intended = intended.unwrap_or(started);
        self.count_start(started, intended);
        // A stream that was read a moment ago needs no check.
        if !is_at_once && self.is_spent() {
            self.close();
            self.wait_for_opening().await;
        }
        let result = self.answer(intended, started).await;
        match result {
            Ok(sample) => {
                self.record(&sample);
                if self.stream.is_some() && self.early.is_none() {
                    (self.phase, self.since) = (Phase::Done, sample.done);
                }
                Ok(())
            }
            Err(failure) => {
                self.record_failure(failure);
                Err(failure)
            }
        }
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its parameters twice, in every idle connection"
    )]
    fn answer(
        &mut self,
        intended: Instant,
        started: Instant,
    ) -> impl Future<Output = Result<Sample, Failure>> {
        async move {
            let mut sent = started;
            let mut is_new = self.stream.is_none();
            if is_new && self.offers_early() {
                return Box::pin(self.answer_early(intended, started)).await;
            }
            let deadline = self.deadline(started);
            if self.local.plan.streams.is_some() {
                let opened = match self.call_at_once() {
                    true => None,
                    // In a box of its own: most tasks never need it, and idle ones are many.
                    false => Box::pin(self.call(deadline)).await?,
                };
                is_new = opened.is_some();
                sent = opened.unwrap_or_else(|| self.local.engine.now());
            } else if is_new {
                sent = self.open(deadline).await?;
            }
            let Some(stream) = &self.stream else {
                return Err(Failure::Stream(StreamError::Reset));
            };
            let batch = send(&self.local, stream);
            let (received, times) = receive(&self.local, stream, batch, deadline).await?;
            self.close_if_over(batch, received.keep_alive && !times.is_last);
            Ok(Sample {
                connection: self.connection(),
                intended,
                started,
                connected: is_new.then_some(sent),
                sent,
                first_byte: times.first_byte,
                done: times.done,
                status: received.status,
                head_bytes: received.head_bytes,
                content_bytes: received.content_bytes,
                bytes: received.bytes,
                keep_alive: received.keep_alive,
            })
        }
    }

    /// Whether the server has closed the connection while no request was in progress, or has sent unrequested bytes:
    /// this is no failure, and no answer to the next request; a new connection is opened.
    fn is_spent(&self) -> bool {
        let Some(stream) = &self.stream else {
            return false;
        };
        match stream.poll_readable(1) {
            Poll::Ready(Ok(readable)) => {
                let surplus = readable.unread > 0;
                self.local.memory.borrow_mut().tally.surplus += u64::from(surplus);
                surplus || readable.finished
            }
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    /// Begins a request on the connection of HTTP/2, if that is open and has a place for it.
    fn call_at_once(&mut self) -> bool {
        let (local, number) = (&self.local, self.connection());
        let call = local.multiplexed.call(number, &local.scheduler);
        self.stream = call.map(Carrier::Call);
        self.stream.is_some()
    }

    /// The same, after waiting for a place, or opening the connection; returns when that was established, if it was for this request.
    async fn call(&mut self, deadline: Instant) -> Result<Option<Instant>, Failure> {
        let (local, number) = (Rc::clone(&self.local), self.connection());
        let mut opened = None;
        loop {
            let found = poll_fn(|_| local.multiplexed.poll_call(number, &local.scheduler));
            let found = local.scheduler.until(deadline, found).await;
            match found.map_err(|_| Failure::ConnectTimeout)? {
                Found::Call(call) => {
                    self.stream = Some(Carrier::Call(call));
                    return Ok(opened);
                }
                Found::Open if opened.is_some() => return Err(Failure::Stream(StreamError::Reset)),
                Found::Open => {}
            }
            let place = Establishing {
                local: &local,
                number,
            };
            self.wait_for_opening().await;
            let Opened { stream, at, .. } = self.establish(deadline).await?;
            let started = multiplexing::start(stream, &local.plan, &local.scheduler);
            let connection = started.ok_or(Failure::Stream(StreamError::Reset))?;
            // Before, more requests could be begun than the server allows.
            let settled = poll_fn(|_| connection.poll_settled());
            let settled = local.scheduler.until(deadline, settled).await;
            settled.map_err(|_| Failure::ConnectTimeout)?;
            place.set(Some(connection));
            opened = Some(at);
        }
    }

    /// Opens the stream; returns when it was established.
    async fn open(&mut self, deadline: Instant) -> Result<Instant, Failure> {
        let Opened { stream, at, .. } = self.establish(deadline).await?;
        self.stream = Some(Carrier::Own(stream));
        Ok(at)
    }

    /// A new connection, whose first request may go with the handshake.
    async fn establish(&mut self, deadline: Instant) -> Result<Opened<E>, Failure> {
        let began = self.local.engine.now();
        let stream = connect(&self.local, self.connection(), deadline).await?;
        let connected = self.local.engine.now();
        let (mut now, mut facts) = (connected, None);
        if self.local.plan.tls.is_some() {
            // In a box of its own, as idle tasks have to keep room for it; a handshake allocates more.
            let early = self.early.as_ref().and_then(|early| early.request());
            let securing = Box::pin(secure(&self.local, &stream, (early, deadline)));
            let agreed = securing.await?;
            now = self.local.engine.now();
            self.count_handshake(now.since(connected), &agreed);
            facts = Some(agreed);
        }
        self.failed_connects = 0;
        self.left = self.draw_life();
        let mut memory = self.local.memory.borrow_mut();
        memory.tally.connected += 1;
        memory.tally.open += 1;
        memory.tally.open_max = memory.tally.open_max.max(memory.tally.open);
        if memory.measuring {
            memory
                .recorder
                .on_connected(connected, connected.since(began));
        }
        drop(memory);
        Ok(Opened {
            stream,
            connected,
            at: now,
            facts,
        })
    }

    fn draw_life(&self) -> Option<u32> {
        match &self.local.plan.life {
            Life::Unlimited => None,
            Life::Requests(count) => Some(*count),
            Life::Distribution(weights) => {
                let random = &mut self.local.schedules.borrow_mut().random;
                let index = random.weighted(weights.iter().map(|(_, weight)| *weight));
                weights.get(index).map(|(count, _)| *count)
            }
        }
    }

    /// Closes the stream if the server has done so or is about to, or if it has carried its maximum of requests.
    fn close_if_over(&mut self, batch: Batch, keep_alive: bool) {
        self.left = self.left.map(|left| left.saturating_sub(batch.responses));
        if let Some(Carrier::Call(call)) = &self.stream {
            let passed = call.connection().take_passed();
            let mut memory = self.local.memory.borrow_mut();
            memory.tally.bytes_sent += passed.sent;
            memory.tally.bytes_received += passed.received;
            memory.tally.head_bytes += passed.heads.coded;
            memory.tally.head_field_bytes += passed.heads.fields;
            drop(memory);
            return self.close();
        }
        if !keep_alive || self.left == Some(0) {
            self.close();
        }
    }

    fn close(&mut self) {
        match self.stream.take() {
            Some(Carrier::Own(_)) => self.local.memory.borrow_mut().tally.open -= 1,
            // The connection stays for others.
            Some(Carrier::Call(call)) => {
                drop(call);
                let (local, number) = (&self.local, self.connection());
                local.multiplexed.call_over(number, &local.scheduler);
            }
            None => {}
        }
    }
}

/// A connection of HTTP/2 that a task opens. Others wait; if the task fails, they open it.
struct Establishing<'a, E: Engine, R: Record> {
    local: &'a Local<E, R>,
    number: u32,
}

impl<E: Engine, R: Record> Establishing<'_, E, R> {
    fn set(&self, connection: Option<Rc<Multiplexed<TransportOf<E>>>>) {
        let local = self.local;
        (local.multiplexed).opened(self.number, connection, &local.scheduler);
    }
}

impl<E: Engine, R: Record> Drop for Establishing<'_, E, R> {
    fn drop(&mut self) {
        if self.local.multiplexed.is_opening(self.number) {
            self.set(None);
        }
    }
}

/// Counting and recording.
impl<E: Engine, R: Record> Connection<E, R> {
    fn count_start(&mut self, started: Instant, intended: Instant) {
        let memory = &mut *self.local.memory.borrow_mut();
        if !self.phase.waits() {
            (self.phase, self.since) = (Phase::Waiting, started);
            memory.quiet.on_start(started);
        }
        let lateness = started.since(intended);
        let tally = &mut memory.tally;
        tally.started += 1;
        tally.late_50us += u64::from(lateness > Duration::from_micros(50));
        tally.late_1ms += u64::from(lateness > Duration::from_millis(1));
    }

    fn count_handshake(&self, took: Duration, facts: &TlsFacts) {
        let memory = &mut *self.local.memory.borrow_mut();
        let tally = &mut memory.tally;
        tally.handshakes += 1;
        tally.handshakes_resumed += u64::from(facts.is_resumed);
        tally.early_accepted += u64::from(facts.early_data == EarlyData::Taken);
        tally.early_rejected += u64::from(facts.early_data == EarlyData::Refused);
        if memory.measuring {
            memory.recorder.on_secured(took, facts);
        }
    }

    /// The connection has no request in progress.
    fn rest(&mut self) {
        if self.phase.waits() {
            let now = self.local.engine.now();
            let memory = &mut *self.local.memory.borrow_mut();
            memory.lose(self.since, now);
            memory.quiet.on_rest();
            self.phase = Phase::Idle;
        }
    }

    fn record(&mut self, sample: &Sample) {
        let mut memory = self.local.memory.borrow_mut();
        memory.quiet.on_answer(sample.done);
        memory.longest = memory.longest.max(sample.done.since(sample.started));
        if self.phase == Phase::Failed {
            // The failures before this request was answered.
            memory.lose(self.since, sample.started);
        }
        self.phase = Phase::Idle;
        memory.tally.answered += 1;
        if memory.measuring {
            memory.recorder.on_sample(sample);
        }
    }

    fn record_failure(&mut self, failure: Failure) {
        self.phase = Phase::Failed;
        let mut memory = self.local.memory.borrow_mut();
        memory.tally.on_failure(failure.kind());
        if memory.measuring {
            memory.recorder.on_failure(failure, self.local.engine.now());
        }
    }
}

fn mul(gap: Duration, times: u64) -> Duration {
    let nanos = gap.as_nanos().saturating_mul(u128::from(times));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The pause stops growing after so many failed connects in a row; it is also limited to a hundred times the first one.
const BACKOFF_DOUBLINGS_MAX: u16 = 7;

/// The minimum time between two connects of a refused connection: it does not flood a restarting server, and leaves the
/// thread to the other connections. wrk and ab do not wait.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// Openings that were due and not needed are made up for only for this long: a thread whose turns are long keeps its
/// rate, and connections that all close at once are not all reopened at once.
const OPENINGS_BURST: Duration = Duration::from_millis(10);

/// Requests per second below which a schedule would overflow its duration.
const MIN_RATE: f64 = 1e-6;
