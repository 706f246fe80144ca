//! The slab of tasks: one future type, one box per slot, reused.

use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A task of one worker. A finished task's id is never taken for its slot's next tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    index: u32,
    generation: u32,
}

impl TaskId {
    /// No task: events for it go nowhere.
    pub const NONE: Self = Self {
        index: u32::MAX,
        generation: 0,
    };

    /// The bit of an index that says that the task was spawned by another one (`crate::spawned`), and is in their slab.
    const SPAWNED: u32 = 1 << 31;

    pub(crate) const fn is_spawned(self) -> bool {
        self.index & Self::SPAWNED != 0
    }

    /// The identifier among all tasks of a place in the slab of spawned ones.
    pub(crate) const fn of_spawned(self) -> Self {
        Self {
            index: self.index | Self::SPAWNED,
            generation: self.generation,
        }
    }

    /// What [`TaskId::of_spawned`] was called on.
    pub(crate) const fn in_slab(self) -> Self {
        Self {
            index: self.index & !Self::SPAWNED,
            generation: self.generation,
        }
    }

    /// The identifier as a number, for layers that carry it and know no tasks.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`TaskId::to_bits`].
    pub const fn from_bits(bits: u64) -> Self {
        let [g3, g2, g1, g0, i3, i2, i1, i0] = bits.to_be_bytes();
        Self {
            index: u32::from_be_bytes([i3, i2, i1, i0]),
            generation: u32::from_be_bytes([g3, g2, g1, g0]),
        }
    }
}

/// All tasks of a worker. A slot keeps its box when its task ends, so that a new task costs no allocation.
#[derive(Debug)]
pub struct Tasks<F> {
    slots: Vec<Slot<F>>,
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Slot<F> {
    future: Pin<Box<Option<F>>>,
    generation: u32,
    /// The turn in which the task was polled last, so that two events of one turn poll it once; 0 for never.
    polled_turn: u32,
    /// When the task wants to be polled at the latest.
    deadline: Instant,
    /// Where the wheel holds the slot's entry; `FAR` when it holds none. It stays when the task ends: the next one uses it.
    wheel_entry: Instant,
}

impl<F> Tasks<F> {
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// How many tasks live, reserved slots included.
    pub fn count(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// All tasks that have started and not ended.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.slots
            .iter()
            .zip(0..)
            .filter(|(slot, _)| slot.future.is_some())
            .map(|(slot, index)| TaskId {
                index,
                generation: slot.generation,
            })
    }

    /// Takes a slot, whose task follows with [`Tasks::start`] or which goes back with [`Tasks::release`].
    pub fn reserve(&mut self) -> TaskId {
        let index = self.vacant.pop().unwrap_or_else(|| {
            let index =
                u32::try_from(self.slots.len()).expect("fewer than 2^32 tasks fit in memory");
            self.slots.push(Slot {
                future: Box::pin(None),
                generation: 0,
                polled_turn: 0,
                deadline: Instant::FAR,
                wheel_entry: Instant::FAR,
            });
            index
        });
        TaskId {
            index,
            generation: self.slots[index as usize].generation,
        }
    }

    /// Puts the future into its reserved slot. It runs when it is polled first.
    pub fn start(&mut self, task: TaskId, future: F) {
        if let Some(slot) = self.slot(task) {
            debug_assert!(slot.future.is_none(), "a slot has one tenant");
            slot.future.as_mut().set(Some(future));
        }
    }

    /// Gives a slot back, dropping the future that may be in it.
    pub fn release(&mut self, task: TaskId) {
        let Some(slot) = self.slot(task) else { return };
        slot.future.as_mut().set(None);
        slot.generation = slot.generation.wrapping_add(1);
        slot.polled_turn = 0;
        slot.deadline = Instant::FAR;
        self.vacant.push(task.index);
    }

    /// Polls a task, once a turn at most. A task that is ready is released.
    /// Unknown and finished tasks are ignored: an event may be older than its task's end.
    pub fn poll(&mut self, task: TaskId, turn: u32, context: &mut Context<'_>) -> Polled
    where
        F: Future<Output = ()>,
    {
        let Some(slot) = self.slot(task) else {
            return Polled::Absent;
        };
        if slot.polled_turn == turn {
            return Polled::Absent;
        }
        slot.polled_turn = turn;
        let Some(future) = slot.future.as_mut().as_pin_mut() else {
            return Polled::Absent;
        };
        match future.poll(context) {
            Poll::Pending => Polled::Pending,
            Poll::Ready(()) => {
                self.release(task);
                Polled::Ended
            }
        }
    }

    /// Takes a task's future out of its slot to poll it elsewhere, once a turn at most; [`Tasks::give_back`] or
    /// [`Tasks::release`] must follow.
    pub(crate) fn lend(&mut self, task: TaskId, turn: u32) -> Option<F>
    where
        F: Unpin,
    {
        let slot = self.slot(task)?;
        if slot.polled_turn == turn {
            return None;
        }
        let future = slot.future.take()?;
        slot.polled_turn = turn;
        Some(future)
    }

    /// Puts a future back that is not ready. Returns it if its task was released meanwhile.
    pub(crate) fn give_back(&mut self, task: TaskId, future: F) -> Option<F>
    where
        F: Unpin,
    {
        match self.slot(task) {
            Some(slot) => {
                slot.future.as_mut().set(Some(future));
                None
            }
            None => Some(future),
        }
    }

    /// Takes a task's future out and gives its slot back.
    pub(crate) fn take_out(&mut self, task: TaskId) -> Option<F>
    where
        F: Unpin,
    {
        let future = self.slot(task)?.future.take();
        self.release(task);
        future
    }

    /// Notes when the task wants to be polled at the latest. Returns the number of the wheel's entry if that has to be
    /// armed at `deadline`; otherwise the entry is early enough and will be moved when it expires.
    pub(crate) fn set_deadline(&mut self, task: TaskId, deadline: Instant) -> Option<u32> {
        let slot = self.slot(task)?;
        slot.deadline = deadline;
        if deadline >= slot.wheel_entry {
            return None;
        }
        slot.wheel_entry = deadline;
        Some(task.index)
    }

    /// What to do with the wheel's entry of this number, which has come due at `now`.
    pub(crate) fn on_entry_due(&mut self, index: u32, now: Instant) -> Due {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return Due::Stale;
        };
        if slot.deadline > now && slot.deadline < Instant::FAR {
            slot.wheel_entry = slot.deadline;
            return Due::Later(slot.deadline);
        }
        slot.wheel_entry = Instant::FAR;
        if slot.deadline == Instant::FAR {
            return Due::Stale;
        }
        Due::Now(TaskId {
            index,
            generation: slot.generation,
        })
    }

    fn slot(&mut self, task: TaskId) -> Option<&mut Slot<F>> {
        self.slots
            .get_mut(task.index as usize)
            .filter(|slot| slot.generation == task.generation)
    }
}

impl<F> Default for Tasks<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    Pending,
    Ended,
    /// No such task, or already polled this turn.
    Absent,
}

/// What a due wheel entry means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The task's deadline has passed.
    Now(TaskId),
    /// The deadline was moved on since the entry was made, perhaps by the slot's next task, or lies beyond the wheel's
    /// reach: enter it again.
    Later(Instant),
    /// The task is gone, or waits no longer.
    Stale,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::{Ready, ready};
    use core::task::Waker;

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_finished_task_is_not_mistaken_for_its_successor() {
        let mut tasks: Tasks<Ready<()>> = Tasks::new();
        let first = tasks.reserve();
        tasks.start(first, ready(()));
        assert_eq!(tasks.poll(first, 1, &mut context()), Polled::Ended);
        let second = tasks.reserve();
        tasks.start(second, ready(()));
        assert_eq!(tasks.poll(first, 2, &mut context()), Polled::Absent);
        assert_eq!(tasks.poll(second, 3, &mut context()), Polled::Ended);
        assert_eq!(tasks.count(), 0);
    }

    #[test]
    fn an_identifier_survives_being_a_number() {
        let mut tasks: Tasks<Ready<()>> = Tasks::new();
        for _ in 0..3 {
            let task = tasks.reserve();
            assert_eq!(TaskId::from_bits(task.to_bits()), task);
            tasks.release(task);
        }
        assert_eq!(TaskId::from_bits(TaskId::NONE.to_bits()), TaskId::NONE);
        assert_ne!(TaskId::from_bits(1 << 32), TaskId::from_bits(1));
    }

    #[test]
    fn two_events_in_a_turn_poll_a_task_once() {
        let mut tasks = Tasks::new();
        let task = tasks.reserve();
        tasks.start(task, core::future::pending::<()>());
        assert_eq!(tasks.poll(task, 7, &mut context()), Polled::Pending);
        assert_eq!(tasks.poll(task, 7, &mut context()), Polled::Absent);
        assert_eq!(tasks.poll(task, 8, &mut context()), Polled::Pending);
    }

    #[test]
    fn a_deadline_moved_on_reuses_the_wheel_entry() {
        let mut tasks: Tasks<Ready<()>> = Tasks::new();
        let task = tasks.reserve();
        let at = Instant::from_nanos;
        let number = tasks.set_deadline(task, at(100)).unwrap();
        assert_eq!(tasks.set_deadline(task, at(150)), None);
        assert_eq!(tasks.on_entry_due(number, at(100)), Due::Later(at(150)));
        assert_eq!(tasks.on_entry_due(number, at(150)), Due::Now(task));
        // An earlier one moves the entry.
        assert_eq!(tasks.set_deadline(task, at(300)), Some(number));
        assert_eq!(tasks.set_deadline(task, at(200)), Some(number));
    }

    #[test]
    fn a_slots_entry_serves_its_next_task() {
        let mut tasks: Tasks<Ready<()>> = Tasks::new();
        let at = Instant::from_nanos;
        let first = tasks.reserve();
        let number = tasks.set_deadline(first, at(100)).unwrap();
        tasks.release(first);
        let second = tasks.reserve();
        assert_eq!(tasks.set_deadline(second, at(150)), None);
        assert_eq!(tasks.on_entry_due(number, at(100)), Due::Later(at(150)));
        tasks.release(second);
        assert_eq!(tasks.on_entry_due(number, at(150)), Due::Stale);
        let third = tasks.reserve();
        assert_eq!(tasks.set_deadline(third, at(200)), Some(number));
        assert_eq!(tasks.on_entry_due(number, at(200)), Due::Now(third));
    }
}
