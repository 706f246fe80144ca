//! What tasks of one worker wait for of each other: permits, messages, one-shots.
//!
//! Nothing here is atomic, and nobody is woken through a `Waker`: a waiter is a task's number, written anew each time it
//! polls, so that a future that has gone to another task is right as well. A task that is woken is polled in the same turn
//! ([`Scheduler::wake_soon`](crate::scheduler::Scheduler::wake_soon)). In the steady state nothing allocates.

/// A bounded channel: many senders, one receiver.
pub mod channel;

/// One-shots whose places are used again.
pub mod oneshot;

/// Permits, given in the order in which they were asked for.
pub mod semaphore;

/// The tasks that wait, in order.
mod wait_list;
