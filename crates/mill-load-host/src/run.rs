//! One run: its threads are started, begin together, and report their results to the calling thread.

use crate::interrupt::Stop;
use crate::lazy_attachment::LazyAttachment;
use crate::machine::Observer;
use crate::thread::{self, Orders, ThreadReport};
use mill_load::generator::Part;
use mill_load::local::Abort;
use mill_load::plan::Plan;
use mill_load::platform::{PlatformError, RunOutcome, ThreadCpu, ThreadInput, Watch};
use mill_load::record::Record;
use mill_runtime::time::{Duration, Instant};
use mill_sys::rlimit::{Limit, Resource};
use mill_sys::{affinity, clock};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

/// Carries out a plan. `watch` is called on this thread.
pub(crate) fn run<R: Record>(
    plan: &Plan,
    inputs: Vec<ThreadInput<R>>,
    watch: &mut dyn Watch<R::Interval>,
    (stop, stack): (&Stop, Option<&Arc<LazyAttachment>>),
) -> Result<RunOutcome<R>, PlatformError> {
    raise_descriptors();
    let mut observer = Observer::new(plan);
    let plan = Arc::new(plan.clone());
    let mut pool = WorkerPool::start(&plan, inputs, stop, stack)?;
    if plan.warm_up.is_zero() && plan.begin.is_none() {
        observer.begin();
    }
    let earliest = now() + START_LEAD + START_LEAD_OF_THREAD * plan.threads;
    let begin = plan.begin.map_or(earliest, |begin| begin.max(earliest));
    pool.begin(begin);
    watch.on_begin();
    let measure_from = begin + plan.warm_up;
    pool.listen(measure_from, &mut observer, watch, stop);
    let machine = observer.end();
    let (parts, threads): (Vec<Part<R>>, Vec<ThreadCpu>) = pool.join()?.into_iter().unzip();
    let measured = parts.iter().map(|part| part.measured).max();
    Ok(RunOutcome {
        parts,
        measured: measured.unwrap_or_default(),
        interrupted: stop.is_interrupted(),
        machine: mill_load::platform::Machine { threads, ..machine },
    })
}

/// The monotonic clock that the engines use.
pub(crate) fn now() -> Instant {
    let nanos = u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(nanos)
}

/// The threads of a run.
struct WorkerPool<R: Record> {
    handles: Vec<JoinHandle<()>>,
    begins: Vec<Sender<Instant>>,
    reports: Receiver<(u32, ThreadReport<R>)>,
    ended: Vec<Option<(Part<R>, ThreadCpu)>>,
}

impl<R: Record> WorkerPool<R> {
    /// Starts the threads, and waits until each has its engine.
    fn start(
        plan: &Arc<Plan>,
        inputs: Vec<ThreadInput<R>>,
        stop: &Stop,
        stack: Option<&Arc<LazyAttachment>>,
    ) -> Result<Self, PlatformError> {
        let (sender, reports) = mpsc::channel();
        let mut pool = Self {
            handles: Vec::new(),
            begins: Vec::new(),
            reports,
            ended: inputs.iter().map(|_| None).collect(),
        };
        let cpus = affinity::allowed_cpus().unwrap_or_default();
        for (share, input) in plan.shares().zip(inputs) {
            let (begin, begins) = mpsc::channel();
            let number = share.thread;
            let orders = Orders {
                plan: Arc::clone(plan),
                share,
                cpu: plan.pin.then(|| nth(&cpus, number)).flatten(),
                begins,
                stop: stop.clone(),
                stack: stack.cloned(),
            };
            let reports = sender.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("load {number}"))
                .spawn(move || thread::live(orders, input, &reports));
            match spawned {
                Ok(handle) => pool.handles.push(handle),
                Err(error) => {
                    let sentence = format!(
                        "thread {} of {} could not be started: {error}; use fewer threads",
                        number + 1,
                        plan.threads
                    );
                    return Err(pool.give_up(sentence));
                }
            }
            pool.begins.push(begin);
        }
        drop(sender);
        pool.wait_until_ready()
    }

    fn wait_until_ready(self) -> Result<Self, PlatformError> {
        for _ in 0..self.handles.len() {
            match self.reports.recv() {
                Ok((_, ThreadReport::Ready)) => {}
                Ok((_, ThreadReport::Failed(sentence))) => return Err(self.give_up(sentence)),
                Ok((_, ThreadReport::Interval { .. } | ThreadReport::Ended(..))) | Err(_) => {
                    return Err(self.give_up(String::from(PANICKED)));
                }
            }
        }
        Ok(self)
    }

    /// Ends the threads, which still wait for their beginning.
    fn give_up(self, sentence: String) -> PlatformError {
        drop(self.begins);
        for handle in self.handles {
            // A thread that panicked has printed its message; the run has failed either way.
            let _ = handle.join();
        }
        PlatformError(sentence)
    }

    fn begin(&mut self, at: Instant) {
        for begin in self.begins.drain(..) {
            // A thread that is gone is noticed when it is joined.
            let _ = begin.send(at);
        }
    }

    /// Passes intervals to `watch` until all threads have ended.
    fn listen(
        &mut self,
        measure_from: Instant,
        observer: &mut Observer,
        watch: &mut dyn Watch<R::Interval>,
        stop: &Stop,
    ) {
        loop {
            let received = if observer.has_begun() {
                self.reports
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.reports.recv_timeout(measure_from.since(now()))
            };
            match received {
                Ok((thread, ThreadReport::Interval { elapsed, interval })) => {
                    watch.on_interval(thread, elapsed, interval);
                }
                Ok((thread, ThreadReport::Ended(part, cpu))) => {
                    if ends_the_run(part.aborted.as_ref()) {
                        stop.end_run();
                    }
                    if let Some(place) = self.ended.get_mut(thread as usize) {
                        *place = Some((*part, cpu));
                    }
                }
                Ok((_, ThreadReport::Ready | ThreadReport::Failed(_))) => {}
                Err(RecvTimeoutError::Timeout) => observer.begin(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The threads' results, in order.
    fn join(self) -> Result<Vec<(Part<R>, ThreadCpu)>, PlatformError> {
        for handle in self.handles {
            if handle.join().is_err() {
                return Err(PlatformError(String::from(PANICKED)));
            }
        }
        let all: Option<Vec<_>> = self.ended.into_iter().collect();
        all.ok_or_else(|| PlatformError(String::from(PANICKED)))
    }
}

/// Whether the reason that ended one thread ends the others too. A script that stops its thread only stops that one.
fn ends_the_run(aborted: Option<&Abort>) -> bool {
    matches!(aborted, Some(Abort::Failure(_) | Abort::Script(_)))
}

fn nth(cpus: &[u16], number: u32) -> Option<u16> {
    let index = (number as usize).checked_rem(cpus.len())?;
    cpus.get(index).copied()
}

/// Every connection is a descriptor: raises the limit to the maximum.
pub(crate) fn raise_descriptors() {
    if let Ok(Limit { hard, .. }) = Resource::Descriptors.limit() {
        // If it is refused, connections without a descriptor are counted as such.
        let _ = Resource::Descriptors.set_limit(Limit { soft: hard, hard });
    }
}

/// The time between the announcement of the common beginning and the beginning: all threads have to wake up, one after
/// the other if there are few CPUs.
const START_LEAD: Duration = Duration::from_millis(1);
const START_LEAD_OF_THREAD: Duration = Duration::from_micros(50);

/// A bug of ours; the panic's own message is printed above it.
const PANICKED: &str = "a thread of the load generator panicked; this is a bug";
