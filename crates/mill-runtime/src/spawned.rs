//! Tasks spawned by other tasks: futures of any type, in boxes that are used again.
//!
//! The tasks of accepted connections are of one type and are called statically (`crate::tasks`); spawned ones are few
//! in comparison and are called through a pointer. A task is out of the slab while it is polled, so that it may
//! spawn, end and wake others.

use crate::pool::{FutureBox, FuturePool};
use crate::scheduler::Scheduler;
use crate::tasks::{Due, Polled, TaskId, Tasks};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Whether a worker that drains waits for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It waits: the task serves a client, as a tunnel or a request to an upstream does.
    Finishing,
    /// It does not wait: health checks, look-ups ahead of time.
    Background,
}

/// As many tasks live as may; returns the future.
pub struct Full<F>(pub F);

/// How many spawned tasks there are and were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpawnedCounts {
    /// That live, by purpose.
    pub finishing: usize,
    pub background: usize,
    /// That could not be started.
    pub refused: u64,
    /// Boxes that were allocated for them all.
    pub boxes_made: u64,
}

/// The slab of spawned tasks, and the boxes of those that have ended.
pub(crate) struct SpawnedTasks {
    tasks: RefCell<Tasks<Spawned>>,
    pools: Pools,
    finishing: Cell<usize>,
    background: Cell<usize>,
    refused: Cell<u64>,
    most: Cell<usize>,
}

/// One of them.
struct Spawned {
    future: Pin<Box<dyn Boxed>>,
    purpose: Purpose,
}

/// A future whose type is erased, in a box of its pool.
trait Boxed {
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;

    /// Drops the future and gives the box back.
    fn vacate(self: Pin<Box<Self>>, pools: &Pools);
}

impl<F: Future<Output = ()> + 'static> Boxed for Option<F> {
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Ready(()),
        }
    }

    fn vacate(mut self: Pin<Box<Self>>, pools: &Pools) {
        self.as_mut().set(None);
        pools.of::<F>().put::<F>(self);
    }
}

/// A pool for each type of future that was ever spawned: few, so they are looked through.
struct Pools(RefCell<Vec<(TypeId, Rc<FuturePool>)>>);

impl Pools {
    fn of<F: 'static>(&self) -> Rc<FuturePool> {
        let mut pools = self.0.borrow_mut();
        let wanted = TypeId::of::<F>();
        if let Some((_, pool)) = pools.iter().find(|(known, _)| *known == wanted) {
            return Rc::clone(pool);
        }
        let pool = FuturePool::new(KEPT_MAX);
        pools.push((wanted, Rc::clone(&pool)));
        pool
    }

    fn boxes_made(&self) -> u64 {
        let pools = self.0.borrow();
        pools.iter().map(|(_, pool)| pool.boxes_made()).sum()
    }
}

impl SpawnedTasks {
    pub(crate) const fn new() -> Self {
        Self {
            tasks: RefCell::new(Tasks::new()),
            pools: Pools(RefCell::new(Vec::new())),
            finishing: Cell::new(0),
            background: Cell::new(0),
            refused: Cell::new(0),
            most: Cell::new(SPAWNED_MAX),
        }
    }

    pub(crate) fn start<F>(&self, purpose: Purpose, future: F) -> Result<TaskId, Full<F>>
    where
        F: Future<Output = ()> + 'static,
    {
        if self.finishing.get() + self.background.get() >= self.most.get() {
            self.refused.set(self.refused.get() + 1);
            return Err(Full(future));
        }
        let mut boxed: FutureBox<F> = self.pools.of::<F>().take();
        boxed.as_mut().set(Some(future));
        let mut tasks = self.tasks.borrow_mut();
        let task = tasks.reserve();
        let future: Pin<Box<dyn Boxed>> = boxed;
        tasks.start(task, Spawned { future, purpose });
        let living = self.living(purpose);
        living.set(living.get() + 1);
        Ok(task.of_spawned())
    }

    pub(crate) fn end(&self, task: TaskId) {
        if !task.is_spawned() {
            return;
        }
        // Dropping a future may call this slab again.
        let ended = self.tasks.borrow_mut().take_out(task.in_slab());
        if let Some(ended) = ended {
            self.vacate(ended);
        }
    }

    pub(crate) fn poll(&self, task: TaskId, turn: u32, context: &mut Context<'_>) -> Polled {
        let in_slab = task.in_slab();
        let lent = self.tasks.borrow_mut().lend(in_slab, turn);
        let Some(mut spawned) = lent else {
            return Polled::Absent;
        };
        if spawned.future.as_mut().poll(context).is_ready() {
            self.tasks.borrow_mut().release(in_slab);
            self.vacate(spawned);
            return Polled::Ended;
        }
        // Put back, unless it was ended while it ran.
        let ended = self.tasks.borrow_mut().give_back(in_slab, spawned);
        match ended {
            None => Polled::Pending,
            Some(ended) => {
                self.vacate(ended);
                Polled::Ended
            }
        }
    }

    pub(crate) fn set_deadline(&self, task: TaskId, deadline: Instant) -> Option<u32> {
        let mut tasks = self.tasks.borrow_mut();
        tasks.set_deadline(task.in_slab(), deadline)
    }

    pub(crate) fn on_entry_due(&self, number: u32, now: Instant) -> Due {
        match self.tasks.borrow_mut().on_entry_due(number, now) {
            Due::Now(task) => Due::Now(task.of_spawned()),
            due => due,
        }
    }

    pub(crate) fn ids(&self) -> Vec<TaskId> {
        let tasks = self.tasks.borrow();
        tasks.ids().map(TaskId::of_spawned).collect()
    }

    /// Drops all of them; no further one starts.
    pub(crate) fn close(&self) {
        self.most.set(0);
        for task in self.ids() {
            self.end(task);
        }
    }

    fn vacate(&self, spawned: Spawned) {
        let living = self.living(spawned.purpose);
        living.set(living.get() - 1);
        spawned.future.vacate(&self.pools);
    }

    const fn living(&self, purpose: Purpose) -> &Cell<usize> {
        match purpose {
            Purpose::Finishing => &self.finishing,
            Purpose::Background => &self.background,
        }
    }
}

impl Scheduler {
    /// How many spawned tasks may live at once; 65 536 at first.
    pub fn set_spawned_max(&self, most: usize) {
        self.spawned.most.set(most);
    }

    pub fn spawned(&self) -> SpawnedCounts {
        SpawnedCounts {
            finishing: self.spawned.finishing.get(),
            background: self.spawned.background.get(),
            refused: self.spawned.refused.get(),
            boxes_made: self.spawned.pools.boxes_made(),
        }
    }
}

impl fmt::Debug for SpawnedTasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (finishing, background) = (self.finishing.get(), self.background.get());
        write!(formatter, "SpawnedTasks({finishing} + {background})")
    }
}

impl<F> fmt::Debug for Full<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Full")
    }
}

impl fmt::Debug for Spawned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Spawned({:?})", self.purpose)
    }
}

/// Spawned tasks that may live at once, unless the caller says otherwise.
const SPAWNED_MAX: usize = 65_536;

/// Boxes that are kept for the next futures of a type.
const KEPT_MAX: usize = 1024;

#[cfg(test)]
mod tests;
