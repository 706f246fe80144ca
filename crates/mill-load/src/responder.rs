//! A server that always gives the same answer, with known delays: for checking generators.
//!
//! It runs over any engine. Its answer is rendered once, a request is read only to find its end, and the actual delay
//! of each answer is recorded beside the intended one, so that a generator's figures can be compared with the truth.

/// One connection: requests in, answers out.
mod connection;
/// Answers as bytes, correct or faulty.
mod content;
/// Requests, parsed as far as necessary.
mod head;
/// The delays of answers.
mod law;
/// The command line.
mod options;
/// What was served.
mod served;

pub use content::Fault;
pub use law::{Delay, Law, LawError, Stall};
pub use options::{HELP, Refused, RespondCommand, RespondOptions, parse};
pub use served::Served;

pub(crate) use connection::{Local, serve};
use mill_runtime::engine::{Engine, ListenError, ListenOptions, ListenerId};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::{Duration, Instant};
use mill_runtime::worker::Worker;
use std::rc::Rc;

/// How a responder answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Conduct {
    /// Bytes of content.
    pub content_bytes: usize,
    pub law: Law,
    pub fault: Option<Fault>,
    /// How long before an answer is due the thread stops sleeping.
    pub spin: Duration,
    /// Of random delays.
    pub seed: u64,
}

/// Makes the task of a new connection.
type Accepted<E, F> = Box<dyn FnMut(<E as Engine>::Stream, ListenerId) -> F>;

/// A server on one thread, run turn by turn by the thread's owner.
pub struct Responder<E: Engine, F> {
    worker: Worker<E, F, Accepted<E, F>>,
    local: Rc<Local<E>>,
}

impl<E: Engine, F> core::fmt::Debug for Responder<E, F> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let served = self.local.served.borrow();
        formatter
            .debug_struct("Responder")
            .field("served", &served)
            .finish_non_exhaustive()
    }
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            content_bytes: 6,
            law: Law::default(),
            fault: None,
            spin: Duration::ZERO,
            seed: 1,
        }
    }
}

/// Makes a responder that does not listen yet.
pub fn responder<E: Engine>(
    engine: E,
    conduct: &Conduct,
) -> Responder<E, impl Future<Output = ()>> {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let local = Rc::new(Local::new(engine.clone(), Rc::clone(&scheduler), conduct));
    let shared = Rc::clone(&local);
    let accepted = move |stream, _| serve(Rc::clone(&shared), stream);
    Responder {
        worker: Worker::new(engine, scheduler, Box::new(accepted)),
        local,
    }
}

impl<E: Engine, F: Future<Output = ()>> Responder<E, F> {
    pub fn listen(&mut self, options: &ListenOptions) -> Result<(), ListenError> {
        let listening = self.local.engine.listen(options)?;
        self.worker.add_listener(listening.id);
        Ok(())
    }

    /// One turn of the worker; waits at most until `wake_at`.
    pub fn turn(&mut self, wake_at: Instant) {
        let local = &self.local;
        local.pacer.release(&local.scheduler, local.engine.now());
        let precise = local.pacer.next() - local.spin;
        self.worker.set_alarm(precise.min(wake_at));
        self.worker.turn();
    }

    /// What has been served so far.
    pub fn served(&self) -> Served {
        self.local.served.borrow().clone()
    }
}
