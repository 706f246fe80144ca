//! Synchronisation between tasks of one worker: permits, channels, one-shots.
//!
//! Nothing here is atomic, and no `Waker` is used: a waiter is a task's number, written anew at each poll, so that a
//! future that has moved to another task works as well. A task that is woken is polled in the same turn
//! ([`Scheduler::wake_soon`](crate::scheduler::Scheduler::wake_soon)). In the steady state nothing allocates.

/// A bounded channel: many senders, one receiver.
pub mod channel;

/// One-shots whose slots are used again.
pub mod oneshot;

/// Permits, given in the order of the requests.
pub mod semaphore;

/// The tasks that wait, in order.
mod wait_list;
