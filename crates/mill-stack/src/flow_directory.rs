//! Which of the processes that share a device has a flow: what the process to which its frames come asks before it answers them
//! itself.

use crate::flow::Flow;
use core::fmt;

/// The flows of this host, where other processes find them. Cost of a change: a hash and a compare-and-swap or two.
pub trait FlowDirectory: fmt::Debug + Send {
    /// This host has the flow now, whichever had it before.
    fn insert(&mut self, flow: &Flow);

    /// Of its connection only TIME-WAIT is left: another host may open the flow anew.
    fn note_time_wait(&mut self, flow: &Flow);

    /// Its connection is on the way to another host, which is not known yet. [`Self::remove`] leaves it there.
    fn note_moving(&mut self, flow: &Flow);

    /// This host does not have the flow any more; no change if another one has it by now.
    fn remove(&mut self, flow: &Flow);

    /// Whether another host has a connection, or the handshake of one, of this flow.
    fn is_elsewhere(&self, flow: &Flow) -> bool;
}
