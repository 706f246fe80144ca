//! The worker threads of one process, where each has queues of the device to itself: what they need to forward frames to each other.

use crate::forwarding::{self, FrameQueue, WorkerForwarding};
use mill_sys::{descriptor, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// One worker's part.
#[derive(Clone, Debug)]
pub(crate) struct Sibling<D = OwnedFd> {
    frame_queues: Arc<[FrameQueue]>,
    worker: usize,
    /// Wakes all workers.
    doorbell: D,
}

/// The parts of all of them, in their order.
pub(crate) fn siblings(workers: usize) -> io::Result<Vec<Sibling>> {
    let doorbell = eventfd::create()?;
    let count = u32::try_from(workers).unwrap_or(u32::MAX);
    let frame_queues = forwarding::frame_queues(count);
    let sibling = |worker| {
        Ok(Sibling {
            frame_queues: Arc::clone(&frame_queues),
            worker,
            doorbell: doorbell.try_clone()?,
        })
    };
    (0..workers).map(sibling).collect()
}

impl Sibling {
    pub(crate) fn forwarding(self) -> WorkerForwarding {
        WorkerForwarding::new(self.frame_queues, self.worker, self.doorbell)
    }

    /// For another thread.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(self.with(self.doorbell.try_clone()?))
    }

    /// For a thread that is about to leave this descriptor table; valid as long as this value lives.
    pub(crate) fn lend(&self) -> Sibling<RawFd> {
        self.with(self.doorbell.as_raw_fd())
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }
}

impl Sibling<RawFd> {
    /// Duplicates the descriptor in the caller's descriptor table.
    pub(crate) fn take(self) -> io::Result<Sibling> {
        Ok(self.with(descriptor::duplicate(self.doorbell)?))
    }
}

impl<D> Sibling<D> {
    fn with<E>(&self, doorbell: E) -> Sibling<E> {
        Sibling {
            frame_queues: Arc::clone(&self.frame_queues),
            worker: self.worker,
            doorbell,
        }
    }
}
