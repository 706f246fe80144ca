//! Waking tasks of a worker from other threads: what one worker brings (an answer that several wait for) concerns tasks
//! of others.
//!
//! A task leaves a `Waker` where it waits. What wakes it, on any thread, puts its number into the list of its
//! worker, which looks there at the end of each turn; if the worker may be asleep, its doorbell is rung, once for all
//! that is in the list.

use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use std::cell::Cell;
use std::fmt;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Ends the sleep of a worker's engine, which then reports mail; called on any thread.
#[derive(Clone)]
pub struct Doorbell(Arc<dyn Fn() + Send + Sync>);

impl Doorbell {
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(ring))
    }

    /// Of a worker that is alone in its process: nothing wakes its tasks but itself.
    pub fn silent() -> Self {
        Self::new(|| {})
    }
}

/// The tasks of one worker that are to be polled because another thread says so.
#[derive(Clone, Debug)]
pub(crate) struct Wakes(Arc<List>);

struct List {
    tasks: Mutex<Vec<TaskId>>,
    /// Something is in the list, and the worker looks there yet: no second ring is needed.
    is_told: AtomicBool,
    doorbell: Doorbell,
}

thread_local! {
    /// The list of the worker whose turn runs on this thread: that needs no ring.
    static RUNNING: Cell<*const List> = const { Cell::new(std::ptr::null()) };
}

impl Wakes {
    pub(crate) fn new(doorbell: Doorbell) -> Self {
        Self(Arc::new(List {
            tasks: Mutex::default(),
            is_told: AtomicBool::new(false),
            doorbell,
        }))
    }

    /// Wakes `task`, which belongs to this worker; may be given to any thread. Costs an allocation.
    pub(crate) fn waker(&self, task: TaskId) -> Waker {
        let list = Arc::clone(&self.0);
        Waker::from(Arc::new(TaskWake { list, task }))
    }

    /// A turn of the worker begins on this thread.
    pub(crate) fn begin_turn(&self) {
        RUNNING.set(Arc::as_ptr(&self.0));
    }

    /// Hands the tasks over to the scheduler; called at the end of a turn, before the worker may sleep. Costs one load
    /// where there are none.
    pub(crate) fn pass_on(&self, scheduler: &Scheduler) {
        if !self.0.is_told.swap(false, Ordering::AcqRel) {
            return;
        }
        for task in take(&mut *self.0.tasks()) {
            scheduler.wake(task);
        }
    }
}

impl List {
    fn tasks(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One task that waits.
struct TaskWake {
    list: Arc<List>,
    task: TaskId,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.list.tasks().push(self.task);
        let was_told = self.list.is_told.swap(true, Ordering::AcqRel);
        if !was_told && RUNNING.get() != Arc::as_ptr(&self.list) {
            (self.list.doorbell.0)();
        }
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Doorbell")
    }
}

impl fmt::Debug for List {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "List({} tasks)", self.tasks().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::time::{Instant, UnixTime};
    use std::sync::atomic::AtomicU32;

    fn worker() -> (Wakes, Arc<AtomicU32>) {
        let rings = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&rings);
        let doorbell = Doorbell::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (Wakes::new(doorbell), rings)
    }

    #[test]
    fn another_thread_rings_once_until_the_worker_has_looked() {
        let (wakes, rings) = worker();
        wakes.begin_turn();
        let waker = wakes.waker(TaskId::NONE);
        let scheduler = Scheduler::new(Instant::from_nanos(0), UnixTime::from_seconds(0));
        for expected in 1..=2 {
            let waker = waker.clone();
            let other = std::thread::spawn(move || {
                waker.wake_by_ref();
                waker.wake();
            });
            other.join().unwrap();
            assert_eq!(rings.load(Ordering::Relaxed), expected);
            wakes.pass_on(&scheduler);
        }
    }

    #[test]
    fn a_workers_own_turn_rings_no_bell() {
        let (wakes, rings) = worker();
        let (other, rings_of_other) = worker();
        wakes.begin_turn();
        wakes.waker(TaskId::NONE).wake();
        other.waker(TaskId::NONE).wake();
        assert_eq!(rings.load(Ordering::Relaxed), 0);
        assert_eq!(rings_of_other.load(Ordering::Relaxed), 1);
        other.begin_turn();
        wakes.waker(TaskId::NONE).wake();
        assert_eq!(rings.load(Ordering::Relaxed), 0, "it is told already");
    }
}
