//! Frames for a connection that another worker has.
//!
//! A worker has the flows that come by its queue. A flow that comes by another one from some moment on, because its sender
//! or the card has changed its mind, is unknown to the worker there. Who gets a segment that nothing stands for offers it to
//! the next worker, with how many are left to be asked; the last one answers. Nothing is looked up or written down for the
//! flows that stay where they are.

use mill_stack::link::{Burst, FrameId, Received, ReceivedChecksum};
use mill_sys::eventfd;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One worker's part in it.
#[derive(Debug)]
pub struct WorkerForwarding {
    frame_queues: Arc<[FrameQueue]>,
    own: usize,
    /// Wakes all of them: they need not read it, but be told of each change.
    doorbell: OwnedFd,
    /// What was received and not released.
    held: Vec<Option<FrameCopy>>,
    vacant: Vec<u32>,
    /// Memory for more.
    spare: Vec<FrameCopy>,
    counters: WorkerForwardingCounters,
}

/// What has passed between workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerForwardingCounters {
    /// Frames offered to the next worker, and frames that were offered to this one.
    pub given: u64,
    pub received: u64,
    /// Frames that found no room.
    pub lost: u64,
}

/// Where frames wait for a worker. Anybody puts some in, under a lock that is free nearly always: most flows stay where
/// they are.
#[derive(Debug, Default)]
pub struct FrameQueue {
    /// How many wait, for who only wants to know whether there is something.
    waiting: AtomicU32,
    queued: Mutex<QueuedFrames>,
}

#[derive(Debug, Default)]
struct QueuedFrames {
    queue: VecDeque<FrameCopy>,
    spare: Vec<FrameCopy>,
}

/// A copy of a frame.
#[derive(Debug)]
struct FrameCopy {
    bytes: Vec<u8>,
    checksum: ReceivedChecksum,
    merged: u16,
    /// How many workers there are left to be asked.
    left: u32,
}

/// Queues for so many workers.
pub fn frame_queues(workers: u32) -> Arc<[FrameQueue]> {
    (0..workers).map(|_| FrameQueue::default()).collect()
}

/// Whether a frame came from another worker, who has received it before.
pub const fn is_handed(id: FrameId) -> bool {
    id.0 & HANDED != 0
}

impl WorkerForwarding {
    /// The worker of the place `own`. All have duplicates of one `doorbell`.
    pub fn new(frame_queues: Arc<[FrameQueue]>, own: usize, doorbell: OwnedFd) -> Self {
        debug_assert!(own < frame_queues.len());
        Self {
            frame_queues,
            own,
            doorbell,
            held: Vec::new(),
            vacant: Vec::new(),
            spare: Vec::new(),
            counters: WorkerForwardingCounters::default(),
        }
    }

    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Whether connections that this worker opens may have the port: no other's have it, since they share addresses.
    pub fn is_own_port(&self, port: u16) -> bool {
        usize::from(port) % self.frame_queues.len().max(1) == self.own
    }

    pub fn counters(&self) -> WorkerForwardingCounters {
        self.counters
    }

    /// Takes what others have given, as much as `burst` has room for.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst) {
        let own = self.frame_queues.get(self.own);
        if own.is_some_and(|own| own.waiting.load(Ordering::Acquire) > 0) {
            self.take(burst);
        }
    }

    #[cold]
    fn take(&mut self, burst: &mut Burst) {
        let Some(own) = self.frame_queues.get(self.own) else {
            return;
        };
        let mut queued = own.lock();
        while burst.room() > 0
            && let Some(frame_copy) = queued.queue.pop_front()
        {
            let (checksum, merged) = (frame_copy.checksum, frame_copy.merged);
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.held.push(None);
                u32::try_from(self.held.len() - 1).unwrap_or_default()
            });
            if let Some(held) = self.held.get_mut(place as usize) {
                *held = Some(frame_copy);
            }
            self.counters.received += 1;
            burst.push(Received {
                id: FrameId(place | HANDED),
                checksum,
                merged,
            });
        }
        let left = u32::try_from(queued.queue.len()).unwrap_or(u32::MAX);
        queued.spare.append(&mut self.spare);
        own.waiting.store(left, Ordering::Release);
        drop(queued);
        if left > 0 {
            self.ring();
        }
    }

    /// The bytes of a frame that was received here.
    #[cold]
    pub fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let held = self.held.get_mut((id.0 & !HANDED) as usize);
        held.and_then(Option::as_mut)
            .map(|frame_copy| frame_copy.bytes.as_mut_slice())
            .unwrap_or_default()
    }

    #[cold]
    pub fn release(&mut self, id: FrameId) {
        let place = id.0 & !HANDED;
        let held = self.held.get_mut(place as usize);
        let frame_copy = held.and_then(Option::take);
        debug_assert!(frame_copy.is_some(), "{id:?} was released already");
        if let Some(frame_copy) = frame_copy {
            self.vacant.push(place);
            self.spare.push(frame_copy);
        }
    }

    /// Offers a frame to the next worker; `bytes` are those of a frame that came by the device. `false` if all have been
    /// asked.
    #[cold]
    pub fn give(&mut self, frame: &Received, bytes: &[u8]) -> bool {
        let held = if is_handed(frame.id) {
            let held = self.held.get((frame.id.0 & !HANDED) as usize);
            held.and_then(Option::as_ref)
        } else {
            None
        };
        let others = u32::try_from(self.frame_queues.len()).unwrap_or(u32::MAX) - 1;
        let (left, bytes) = held.map_or((others, bytes), |frame_copy| {
            (frame_copy.left, &frame_copy.bytes)
        });
        let next = (self.own + 1) % self.frame_queues.len().max(1);
        let (Some(left), Some(to)) = (left.checked_sub(1), self.frame_queues.get(next)) else {
            return false;
        };
        let mut queued = to.lock();
        if queued.queue.len() >= LETTERS_MAX {
            // Lost as on a wire whose other end does not keep pace: it is sent again. To answer for somebody else's
            // connection would end it.
            self.counters.lost += 1;
            return true;
        }
        let mut frame_copy = queued.spare.pop().unwrap_or_else(FrameCopy::new);
        frame_copy.bytes.clear();
        frame_copy.bytes.extend_from_slice(bytes);
        (frame_copy.checksum, frame_copy.merged) = (frame.checksum, frame.merged);
        frame_copy.left = left;
        queued.queue.push_back(frame_copy);
        let before = to.waiting.fetch_add(1, Ordering::Release);
        drop(queued);
        self.counters.given += 1;
        if before == 0 {
            self.ring();
        }
        true
    }

    fn ring(&self) {
        // Who does not hear it looks with his next frame.
        let _ = eventfd::signal(self.doorbell.as_fd());
    }
}

impl FrameQueue {
    fn lock(&self) -> MutexGuard<'_, QueuedFrames> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FrameCopy {
    const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            checksum: ReceivedChecksum::Unverified,
            merged: 1,
            left: 0,
        }
    }
}

/// Set in the numbers of frames that came from another worker.
const HANDED: u32 = 1 << 31;

/// Frames that may wait for a worker: as many as the queue of a veth holds.
const LETTERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sys::descriptor;
    use std::time::Duration;

    fn crew(count: u32) -> Vec<WorkerForwarding> {
        let frame_queues = frame_queues(count);
        let doorbell = eventfd::create().unwrap();
        (0..count as usize)
            .map(|own| {
                WorkerForwarding::new(
                    Arc::clone(&frame_queues),
                    own,
                    doorbell.try_clone().unwrap(),
                )
            })
            .collect()
    }

    fn frame(id: u32) -> Received {
        Received {
            id: FrameId(id),
            checksum: ReceivedChecksum::Verified,
            merged: 3,
        }
    }

    fn receive(worker: &mut WorkerForwarding) -> Option<Received> {
        let mut burst = Burst::new(1);
        worker.receive(&mut burst);
        burst.as_slice().first().copied()
    }

    #[test]
    fn a_frame_goes_around_once() {
        let mut crew = crew(3);
        assert!(crew[1].give(&frame(7), b"frame"));
        for index in [2, 0] {
            let worker = &mut crew[index];
            let got = receive(worker).unwrap();
            assert!(is_handed(got.id) && got.merged == 3);
            assert_eq!(got.checksum, ReceivedChecksum::Verified);
            assert_eq!(worker.frame(got.id), b"frame");
            // Nobody else's bytes: it is the frame that he holds.
            assert_eq!(worker.give(&got, b""), index == 2, "{index}");
            worker.release(got.id);
            assert!(receive(worker).is_none());
        }
        assert!(receive(&mut crew[1]).is_none());
        let given = crew.iter().map(|worker| worker.counters().given);
        assert_eq!(given.collect::<Vec<_>>(), [0, 1, 1]);
    }

    #[test]
    fn who_is_alone_answers_himself() {
        let mut crew = crew(1);
        assert!(!crew[0].give(&frame(7), b"frame"));
    }

    #[test]
    fn what_finds_no_room_is_lost_and_counted() {
        let mut crew = crew(2);
        for _ in 0..LETTERS_MAX + 5 {
            assert!(crew[0].give(&frame(7), b"frame"));
        }
        assert_eq!(crew[0].counters().lost, 5);
        let mut count = 0;
        while let Some(got) = receive(&mut crew[1]) {
            crew[1].release(got.id);
            count += 1;
        }
        assert_eq!(count, LETTERS_MAX);
        assert_eq!(crew[1].held.len(), 1, "places are used again");
    }

    #[test]
    fn whoever_sleeps_is_woken() {
        let mut crew = crew(2);
        let is_woken = |worker: &WorkerForwarding| {
            descriptor::wait_readable(&[worker.doorbell_fd()], Some(Duration::ZERO)).unwrap()[0]
        };
        assert!(!is_woken(&crew[1]));
        assert!(crew[0].give(&frame(7), b"frame"));
        assert!(is_woken(&crew[1]));
    }
}
