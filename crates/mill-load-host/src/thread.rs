//! One generating thread: a descriptor table, an engine, turns until the end.

use crate::ending;
use crate::interrupt::Stop;
use crate::lazy_attachment::LazyAttachment;
use crate::respond;
use mill_engine::{CombinedEngine, KernelOptions, combined, offer};
use mill_load::generator::{Part, Progress, generator};
use mill_load::origin::Origin;
use mill_load::plan::{Plan, Share};
use mill_load::platform::{ThreadCpu, ThreadInput};
use mill_load::record::Record;
use mill_load::request::Requests;
use mill_runtime::engine::{Engine, ListenerId};
use mill_runtime::time::{Duration, Instant};
use mill_sys::usage::CpuUsage;
use mill_sys::{affinity, descriptor, passing, process};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// The orders of a thread.
pub(crate) struct Orders {
    pub(crate) plan: Arc<Plan>,
    pub(crate) share: Share,
    /// The CPU to be bound to.
    pub(crate) cpu: Option<u16>,
    /// Gives the common beginning once; closes without one if the run is cancelled.
    pub(crate) begins: Receiver<Instant>,
    pub(crate) stop: Stop,
    pub(crate) stack: Option<Arc<LazyAttachment>>,
}

/// A report of a thread.
pub(crate) enum ThreadReport<R: Record> {
    /// It is ready to begin.
    Ready,
    /// It could not get ready: a message.
    Failed(String),
    Interval {
        /// Since the measured period began.
        elapsed: Duration,
        interval: R::Interval,
    },
    Ended(Box<Part<R>>, ThreadCpu),
}

/// Runs the thread.
pub(crate) fn live<R: Record>(
    orders: Orders,
    input: ThreadInput<R>,
    reports: &Sender<(u32, ThreadReport<R>)>,
) {
    let number = orders.share.thread;
    // The receiver reads until all threads have ended, unless it has panicked.
    let report = |what| drop(reports.send((number, what)));
    let settled = settle_in(
        orders.cpu,
        &input.requests,
        (orders.stack.as_deref(), number),
        orders.plan.origin,
    );
    let (engine, listener) = match settled {
        Ok(settled) => settled,
        Err(sentence) => return report(ThreadReport::Failed(sentence)),
    };
    report(ThreadReport::Ready);
    let Ok(begin) = orders.begins.recv() else {
        return;
    };
    let measure_from = begin + orders.plan.warm_up;
    let part = (orders.plan, orders.share);
    let mut generator = generator(engine.clone(), part, begin, input.requests, input.recorder);
    if let Some(listener) = listener {
        generator.add_listener(listener);
    }
    let mut cpu = CpuWatch::new(measure_from);
    loop {
        let now = engine.now();
        cpu.look(now);
        if orders.stop.is_asked() {
            break;
        }
        match generator.turn(now, cpu.next_look(now + STOP_DELAY_MAX)) {
            Progress::Running => {}
            Progress::Interval(interval) => {
                let elapsed = now.since(measure_from);
                report(ThreadReport::Interval { elapsed, interval });
            }
            Progress::Ended => break,
        }
    }
    if let Some(until) = generator.rests_until() {
        rest(&engine, until, &orders.stop);
    }
    let used = cpu.end(engine.now());
    let part = generator.finish();
    ending::end(&engine);
    report(ThreadReport::Ended(Box::new(part), used));
}

/// Waits for the end of the run, or for an interrupt.
#[expect(
    clippy::disallowed_methods,
    reason = "the generator has ended: nothing is left on this thread that a timer could wake"
)]
fn rest(engine: &CombinedEngine, until: Instant, stop: &Stop) {
    while !stop.is_asked() {
        let left = until.since(engine.now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(STOP_DELAY_MAX));
    }
}

/// Sets up the thread; the error is a message.
fn settle_in(
    cpu: Option<u16>,
    requests: &Requests,
    (stack, number): (Option<&LazyAttachment>, u32),
    origin: Option<Origin>,
) -> Result<(CombinedEngine, Option<ListenerId>), String> {
    if let Some(cpu) = cpu {
        affinity::bind_to(&[cpu])
            .map_err(|error| format!("a thread could not be bound to CPU {cpu}: {error}"))?;
    }
    // A script's files are opened and closed by other threads too, and DPDK's drivers use descriptors of their own: these must share the
    // table of the process.
    let shares = stack.is_some_and(LazyAttachment::needs_shared_table);
    if !shares && !matches!(requests, Requests::Script(_)) {
        // In a sandbox that forbids it the table is shared, which costs only speed.
        let _ = descriptor::unshare_table();
    }
    // Never refused; a wait that ends 50 us late is measured as lateness.
    let _ = process::set_timer_slack(TIMER_SLACK);
    let mailbox = origin.map(offered).transpose()?;
    let options = KernelOptions {
        mailbox,
        exact_waits: true,
        ..KernelOptions::default()
    };
    let stack = stack.map(|stack| stack.bypass(number)).transpose();
    let engine = stack.and_then(|stack| combined::engine(options, stack));
    let engine = engine.map_err(|error| no_engine(&error))?;
    let listener = origin.map(|origin| listen(&engine, origin)).transpose()?;
    Ok((engine, listener))
}

fn listen(engine: &CombinedEngine, origin: Origin) -> Result<ListenerId, String> {
    let listening = engine.listen(&origin.listening());
    listening.map(|listening| listening.id).map_err(|failed| {
        let error = io::Error::from_raw_os_error(failed.code);
        format!(
            "--origin: {} at port {} failed: {error}",
            failed.call, origin.port
        )
    })
}

/// The kernel's socket of the thread's own server, in a mailbox as engines take it.
fn offered(origin: Origin) -> Result<OwnedFd, String> {
    let refused = |error| no_engine(&error);
    let socket = respond::listen(origin.address(), false)?;
    let (near, far) = passing::pair().map_err(refused)?;
    let key = offer::encode(&origin.listening().address, None);
    passing::send(near.as_fd(), &key, &[socket.as_fd()]).map_err(refused)?;
    Ok(far)
}

fn no_engine(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(EMFILE | ENFILE) => {
            String::from("no descriptor is left even to wait for connections; raise \"ulimit -n\"")
        }
        _ => format!("a thread could not set up its connections: {error}"),
    }
}

/// The CPU time of the thread in the measured period.
struct CpuWatch {
    measure_from: Instant,
    before: Option<(Instant, CpuUsage)>,
}

impl CpuWatch {
    fn new(measure_from: Instant) -> Self {
        Self {
            measure_from,
            before: None,
        }
    }

    /// Takes the first reading once the measured period has begun.
    fn look(&mut self, now: Instant) {
        if self.before.is_none() && now >= self.measure_from {
            self.before = Some((now, CpuUsage::of_thread().unwrap_or_default()));
        }
    }

    /// When the next reading is due.
    fn next_look(&self, at_latest: Instant) -> Instant {
        match self.before {
            None => self.measure_from.min(at_latest),
            Some(_) => at_latest,
        }
    }

    fn end(self, now: Instant) -> ThreadCpu {
        let Some((since, before)) = self.before else {
            return ThreadCpu::default();
        };
        let used = CpuUsage::of_thread().unwrap_or(before) - before;
        ThreadCpu {
            user: used.user,
            system: used.system,
            wall: now.since(since),
            involuntary_switches: used.involuntary_switches,
        }
    }
}

/// How long it may take until a thread checks whether to stop.
const STOP_DELAY_MAX: Duration = Duration::from_millis(20);

/// By default Linux may wake a thread up to 50 us late, to save power; this is the smallest value.
const TIMER_SLACK: Duration = Duration::from_nanos(1);

/// Linux's error numbers (asm-generic/errno-base.h).
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
