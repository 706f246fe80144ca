//! Helper threads for calls that wait for a disk: one bounded queue, and what was done in the order in which it was done.
//!
//! A pool belongs to one worker thread and is made by it: a worker has a descriptor table of its own, which only threads
//! that it starts share, and so a file that a helper thread opens is the worker's.

use mill_runtime::files::PoolLimits;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_sys::eventfd;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::thread;

/// The helper threads of one worker. When it is dropped they end, each after the call that it is in; nothing waits for
/// them, since a disk may never answer.
pub(super) struct Pool {
    shared: Arc<Shared>,
    limits: Cell<PoolLimits>,
    threads: Cell<usize>,
}

/// All threads are in calls, and as many further calls wait as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// What worker and helper threads share.
struct Shared {
    queue: Mutex<Queue>,
    /// Something was put into the queue, or it was closed.
    changed: Condvar,
    /// Tasks whose calls were done since the worker has looked last.
    done: Mutex<Vec<TaskId>>,
    /// Readable from the first of these on.
    signal: OwnedFd,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    /// Threads that wait for a call.
    idle: usize,
    /// Threads that are in a call.
    busy: usize,
    is_closed: bool,
}

/// Does the call and returns the task that waits for it, if one still does.
type Call = Box<dyn FnOnce() -> Option<TaskId> + Send>;

impl Pool {
    pub(super) fn new(limits: PoolLimits) -> io::Result<Self> {
        let shared = Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            done: Mutex::default(),
            signal: eventfd::create()?,
        };
        Ok(Self {
            shared: Arc::new(shared),
            limits: Cell::new(limits),
            threads: Cell::new(0),
        })
    }

    /// Threads that were started stay.
    pub(super) fn set_limits(&self, limits: PoolLimits) {
        self.limits.set(limits);
    }

    /// Changes when calls are done, to be watched for changes: it is never read.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.shared.signal.as_fd()
    }

    /// Appends the tasks whose calls were done to `tasks`.
    pub(super) fn collect(&self, tasks: &mut Vec<TaskId>) {
        tasks.append(&mut lock(&self.shared.done));
    }

    /// Has a helper thread do `call` for the task that polls what is returned. A call that was not begun when that is
    /// dropped is not done; the result of one that was begun is dropped.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        scheduler: &Rc<Scheduler>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answer<T>, Full> {
        let promise = Arc::new(Mutex::new(Promise {
            result: None,
            task: scheduler.current(),
        }));
        let promised = Arc::downgrade(&promise);
        self.enqueue(Box::new(move || keep(&promised, call)))?;
        Ok(Answer {
            scheduler: Rc::clone(scheduler),
            promise,
        })
    }

    fn enqueue(&self, call: Call) -> Result<(), Full> {
        let limits = self.limits.get();
        let mut queue = lock(&self.shared.queue);
        let threads_max = limits.threads_max.max(1);
        // Calls for threads that are idle, about to start, or not started yet are not waiting.
        let under_way = queue.calls.len() + queue.busy;
        if under_way >= limits.queue_max.saturating_add(threads_max) {
            return Err(Full);
        }
        queue.calls.push_back(call);
        let lacks_threads = queue.calls.len() > queue.idle;
        drop(queue);
        if lacks_threads && self.threads.get() < threads_max {
            self.start_thread();
        } else {
            self.shared.changed.notify_one();
        }
        Ok(())
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new()
            .name("mill-files".into())
            .stack_size(STACK_BYTES);
        if builder.spawn(move || shared.work()).is_ok() {
            self.threads.set(self.threads.get() + 1);
        } else if self.threads.get() == 0 {
            // The system gives this process no further thread: it is done here, as without a pool.
            let call = lock(&self.shared.queue).calls.pop_front();
            self.shared.report(call.and_then(|call| call()));
        }
    }
}

impl Shared {
    /// The life of a helper thread.
    fn work(&self) {
        while let Some(call) = self.next_call() {
            let task = call();
            // Before the worker is told: its next call finds this thread free.
            lock(&self.queue).busy -= 1;
            self.report(task);
        }
    }

    fn next_call(&self) -> Option<Call> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(call) = queue.calls.pop_front() {
                queue.busy += 1;
                return Some(call);
            }
            queue.idle += 1;
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Tells the worker which task waits for a call that is done. The worker is signalled once for all that it has not
    /// collected yet.
    fn report(&self, task: Option<TaskId>) {
        let Some(task) = task else {
            return;
        };
        let mut done = lock(&self.done);
        let is_first = done.is_empty();
        done.push(task);
        drop(done);
        if is_first {
            // Fails only for a descriptor that is none.
            let _ = eventfd::signal(self.signal.as_fd());
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.is_closed = true;
        let calls = std::mem::take(&mut queue.calls);
        drop(queue);
        drop(calls);
        self.shared.changed.notify_all();
    }
}

/// What comes of a call that a helper thread does.
pub(super) struct Answer<T> {
    scheduler: Rc<Scheduler>,
    promise: Arc<Mutex<Promise<T>>>,
}

struct Promise<T> {
    result: Option<T>,
    /// The task that polled last.
    task: TaskId,
}

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let mut promise = lock(&self.promise);
        match promise.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                promise.task = self.scheduler.current();
                Poll::Pending
            }
        }
    }
}

/// Does a call unless nothing waits for it any more, and leaves the result where the task finds it.
fn keep<T>(promised: &Weak<Mutex<Promise<T>>>, call: impl FnOnce() -> T) -> Option<TaskId> {
    if promised.strong_count() == 0 {
        return None;
    }
    let result = call();
    let promise = promised.upgrade()?;
    let mut promise = lock(&promise);
    promise.result = Some(result);
    Some(promise.task)
}

/// Nothing panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = lock(&self.shared.queue).calls.len();
        write!(
            formatter,
            "Pool({} threads, {waiting} wait)",
            self.threads.get()
        )
    }
}

/// The stack of a helper thread, in bytes of address space: a system call and a directory listing need far less.
const STACK_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests;
