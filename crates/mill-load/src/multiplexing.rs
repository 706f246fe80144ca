//! Connections of HTTP/2: the tasks of one share it.

use crate::plan::Plan;
use mill_multiplex::call::Call;
use mill_multiplex::{Multiplexed, Options};
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_tls::transport::TransportOf;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// The connections of a thread, by number.
pub(crate) struct Multiplexing<E: Engine>(RefCell<BTreeMap<u32, Place<E>>>);

/// Where a connection is, or comes to be.
enum Place<E: Engine> {
    /// One task opens it; these wait for that.
    Opening(Vec<TaskId>),
    Open(Rc<Multiplexed<TransportOf<E>>>, Queue),
}

/// Tasks that wait for a place on a connection, where the server allows fewer requests at once than there are tasks.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<TaskId>,
    /// Those whose turn it is, which have not run since.
    admitted: Vec<TaskId>,
}

/// What a task finds.
pub(crate) enum Found<E: Engine> {
    Call(Call<TransportOf<E>>),
    /// There is none: the task opens it, and says so by [`Multiplexing::opened`].
    Open,
}

impl<E: Engine> Multiplexing<E> {
    /// A request on connection `number`, if it is open and none waits for a place on it.
    pub(crate) fn call(&self, number: u32, scheduler: &Scheduler) -> Option<Call<TransportOf<E>>> {
        let mut places = self.0.borrow_mut();
        let Some(Place::Open(connection, queue)) = places.get_mut(&number) else {
            return None;
        };
        let may_pass = queue.may_pass(scheduler.current());
        may_pass.then(|| connection.open()).flatten()
    }

    /// A request on connection `number`; waits while another task opens it.
    pub(crate) fn poll_call(&self, number: u32, scheduler: &Scheduler) -> Poll<Found<E>> {
        let mut places = self.0.borrow_mut();
        match places.get_mut(&number) {
            Some(Place::Open(connection, queue)) => {
                let task = scheduler.current();
                if queue.may_pass(task)
                    && let Some(call) = connection.open()
                {
                    return Poll::Ready(Found::Call(call));
                }
                if connection.is_open() {
                    queue.waiting.push_back(task);
                    return Poll::Pending;
                }
            }
            Some(Place::Opening(waiting)) => {
                waiting.push(scheduler.current());
                return Poll::Pending;
            }
            None => {}
        }
        places.insert(number, Place::Opening(Vec::new()));
        Poll::Ready(Found::Open)
    }

    /// A request is over: another one may begin.
    pub(crate) fn call_over(&self, number: u32, scheduler: &Scheduler) {
        if let Some(Place::Open(connection, queue)) = self.0.borrow_mut().get_mut(&number) {
            let woken = match connection.is_open() {
                true => queue.waiting.len().min(1),
                false => queue.waiting.len(),
            };
            for task in queue.waiting.drain(..woken) {
                queue.admitted.push(task);
                scheduler.wake_soon(task);
            }
        }
    }

    /// Whether a task is about to open it.
    pub(crate) fn is_opening(&self, number: u32) -> bool {
        matches!(self.0.borrow().get(&number), Some(Place::Opening(_)))
    }

    /// The task has opened the connection, or failed to (`None`).
    pub(crate) fn opened(
        &self,
        number: u32,
        connection: Option<Rc<Multiplexed<TransportOf<E>>>>,
        scheduler: &Scheduler,
    ) {
        let mut places = self.0.borrow_mut();
        let before = match connection {
            Some(connection) => places.insert(number, Place::Open(connection, Queue::default())),
            None => places.remove(&number),
        };
        if let Some(Place::Opening(waiting)) = before {
            for task in waiting {
                scheduler.wake_soon(task);
            }
        }
    }
}

/// Has a connection carry requests; `None`: there can be no more tasks.
pub(crate) fn start<S: Stream>(
    stream: S,
    plan: &Plan,
    scheduler: &Rc<Scheduler>,
) -> Option<Rc<Multiplexed<S>>> {
    let options = Options {
        calls_max: usize::try_from(plan.per_connection()).unwrap_or(usize::MAX),
        window_bytes: plan.window_bytes,
        window_bytes_max: plan.window_bytes,
        idle_timeout: Duration::from_secs(24 * 3600),
    };
    let scheme: &[u8] = match plan.tls {
        Some(_) => b"https",
        None => b"http",
    };
    Multiplexed::start(stream, scheme, &options, scheduler)
}

impl Queue {
    /// Whether it is the task's turn: none goes before those that wait.
    fn may_pass(&mut self, task: TaskId) -> bool {
        let place = self.admitted.iter().position(|admitted| *admitted == task);
        match place {
            Some(place) => {
                self.admitted.swap_remove(place);
                true
            }
            None => self.waiting.is_empty() && self.admitted.is_empty(),
        }
    }
}

impl<E: Engine> Default for Multiplexing<E> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<E: Engine> fmt::Debug for Multiplexing<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Multiplexing({})", self.0.borrow().len())
    }
}
