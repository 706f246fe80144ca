//! Hands frames to the worker that has their connection.
//!
//! Each worker has the flows that arrive at its queues. If a flow moves to another queue, because the sender or the
//! card spreads it differently, the worker there does not know its connection. A worker that finds no connection for a
//! segment forwards a copy to the next worker, with a count of the workers that are left to be tried; the last one
//! answers it. Flows that stay where they are cost no lookup and no state.
//!
//! Each worker first looks whether another process has the flow (mill-device `handover.rs`).

use mill_stack::link::{Burst, FrameId, Received, ReceivedChecksum};
use mill_sys::eventfd;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One worker's end of the forwarding.
#[derive(Debug)]
pub struct WorkerForwarding {
    frame_queues: Arc<[FrameQueue]>,
    own: usize,
    /// An eventfd that wakes all workers. It is never read: watch it edge-triggered.
    doorbell: Arc<OwnedFd>,
    /// Frames received from another worker and not released yet.
    held: Vec<Option<FrameCopy>>,
    vacant: Vec<u32>,
    /// Released copies, to be filled again by other workers.
    spare: Vec<FrameCopy>,
    counters: WorkerForwardingCounters,
}

/// What has passed between workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerForwardingCounters {
    /// Frames forwarded to the next worker, and frames received from the previous one.
    pub given: u64,
    pub received: u64,
    /// Frames dropped because the next worker's queue was full.
    pub lost: u64,
}

/// Frames that wait for a worker. The lock is contended rarely, as most flows stay where they are.
#[derive(Debug, Default)]
pub struct FrameQueue {
    /// How many wait; read without the lock.
    waiting: AtomicU32,
    queued: Mutex<QueuedFrames>,
}

#[derive(Debug, Default)]
struct QueuedFrames {
    queue: VecDeque<FrameCopy>,
    /// Of the frames in the queue.
    bytes: usize,
    spare: Vec<FrameCopy>,
}

/// A copy of a frame.
#[derive(Debug)]
struct FrameCopy {
    bytes: Vec<u8>,
    checksum: ReceivedChecksum,
    merged: u16,
    /// How many workers are left to be tried.
    left: u32,
    /// It is another process's, to which a worker that was tried has no way yet.
    has_no_way: bool,
}

/// Queues for so many workers.
pub fn frame_queues(workers: u32) -> Arc<[FrameQueue]> {
    (0..workers).map(|_| FrameQueue::default()).collect()
}

/// Whether a frame was forwarded by another worker.
pub const fn is_handed(id: FrameId) -> bool {
    id.0 & HANDED != 0
}

impl WorkerForwarding {
    /// The forwarding of worker `own`. All workers have duplicates of one `doorbell`.
    pub fn new(frame_queues: Arc<[FrameQueue]>, own: usize, doorbell: OwnedFd) -> Self {
        debug_assert!(own < frame_queues.len());
        Self {
            frame_queues,
            own,
            doorbell: Arc::new(doorbell),
            held: Vec::new(),
            vacant: Vec::new(),
            spare: Vec::new(),
            counters: WorkerForwardingCounters::default(),
        }
    }

    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Whether this worker may open connections between these ports: each worker has flows of its own, as all share the
    /// addresses. Over a memif they are those of its rings (`memif/share.rs`).
    pub fn is_own_flow(&self, remote_port: u16, local_port: u16) -> bool {
        let flow = usize::from(remote_port.wrapping_add(local_port));
        flow % self.frame_queues.len().max(1) == self.own
    }

    pub fn counters(&self) -> WorkerForwardingCounters {
        self.counters
    }

    /// Takes forwarded frames, as far as `burst` has room.
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
            queued.bytes -= frame_copy.bytes.len();
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
        queued.spare.truncate(SPARE_MAX);
        own.waiting.store(left, Ordering::Release);
        drop(queued);
        if left > 0 {
            self.ring();
        }
    }

    /// The bytes of a forwarded frame.
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

    /// Forwards a frame to the next worker; `bytes` are those of a frame that the device received. With `has_no_way` it is another
    /// process's, to which this worker has no way yet: no other one answers it. `false` if all workers were tried.
    #[cold]
    pub fn give(&mut self, frame: &Received, bytes: &[u8], has_no_way: bool) -> bool {
        let others = u32::try_from(self.frame_queues.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let has_no_way = has_no_way || self.has_no_way(frame.id);
        let held = self.held(frame.id);
        let (left, bytes) = held.map_or((others, bytes), |frame_copy| {
            (frame_copy.left, &frame_copy.bytes)
        });
        let next = (self.own + 1) % self.frame_queues.len().max(1);
        let (Some(left), Some(to)) = (left.checked_sub(1), self.frame_queues.get(next)) else {
            return false;
        };
        match to.put((frame.checksum, frame.merged), bytes, (left, has_no_way)) {
            Put::Lost => self.counters.lost += 1,
            Put::First => {
                self.counters.given += 1;
                self.ring();
            }
            Put::Behind => self.counters.given += 1,
        }
        true
    }

    /// The bytes of a frame that was forwarded to this worker; `None` for one of the device.
    #[cold]
    pub(crate) fn bytes(&self, id: FrameId) -> Option<&[u8]> {
        self.held(id).map(|frame_copy| frame_copy.bytes.as_slice())
    }

    /// Whether a worker that has forwarded this frame knows that it is another process's.
    #[cold]
    pub(crate) fn has_no_way(&self, id: FrameId) -> bool {
        self.held(id)
            .is_some_and(|frame_copy| frame_copy.has_no_way)
    }

    /// A frame that was forwarded to this worker; `None` for one of the device.
    fn held(&self, id: FrameId) -> Option<&FrameCopy> {
        let held = self.held.get((id.0 & !HANDED) as usize)?;
        held.as_ref().filter(|_| is_handed(id))
    }

    fn ring(&self) {
        // A worker that misses the event finds the frame at its next turn.
        let _ = eventfd::signal(self.doorbell.as_fd());
    }
}

/// What became of a frame for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    /// It is the only one that waits: its worker may be asleep.
    First,
    Behind,
    /// Dropped, as on a full link: the peer retransmits. A RST instead would end another worker's connection.
    Lost,
}

impl FrameQueue {
    /// Copies a frame into the queue: its checksum and number of merged segments, bytes, how many workers are left to be tried, and
    /// whether one that was had no way to its process.
    fn put(
        &self,
        (checksum, merged): (ReceivedChecksum, u16),
        bytes: &[u8],
        (left, has_no_way): (u32, bool),
    ) -> Put {
        let mut queued = self.lock();
        if queued.queue.len() >= FRAMES_MAX || queued.bytes + bytes.len() > BYTES_MAX {
            return Put::Lost;
        }
        queued.bytes += bytes.len();
        let mut frame_copy = queued.spare.pop().unwrap_or_else(FrameCopy::new);
        frame_copy.bytes.clear();
        frame_copy.bytes.extend_from_slice(bytes);
        (frame_copy.checksum, frame_copy.merged) = (checksum, merged);
        (frame_copy.left, frame_copy.has_no_way) = (left, has_no_way);
        queued.queue.push_back(frame_copy);
        match self.waiting.fetch_add(1, Ordering::Release) {
            0 => Put::First,
            _ => Put::Behind,
        }
    }

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
            has_no_way: false,
        }
    }
}

/// Set in the ids of forwarded frames.
const HANDED: u32 = 1 << 31;

/// Frames that may wait for a worker: a few windows of a connection that sends in bulk.
const FRAMES_MAX: usize = 4096;

/// Bytes that may wait for a worker, the same with frames of 64 KiB.
const BYTES_MAX: usize = 16 << 20;

/// Buffers that are kept for further frames.
const SPARE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sys::descriptor;
    use std::time::Duration;

    fn workers(count: u32) -> Vec<WorkerForwarding> {
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
    fn a_frame_is_forwarded_to_each_worker_once() {
        let mut workers = workers(3);
        assert!(workers[1].give(&frame(7), b"frame", false));
        for index in [2, 0] {
            let worker = &mut workers[index];
            let got = receive(worker).unwrap();
            assert!(is_handed(got.id) && got.merged == 3);
            assert_eq!(got.checksum, ReceivedChecksum::Verified);
            assert_eq!(worker.frame(got.id), b"frame");
            // The bytes given are ignored: those of the received copy count.
            assert_eq!(worker.give(&got, b"", false), index == 2, "{index}");
            worker.release(got.id);
            assert!(receive(worker).is_none());
        }
        assert!(receive(&mut workers[1]).is_none());
        let given = workers.iter().map(|worker| worker.counters().given);
        assert_eq!(given.collect::<Vec<_>>(), [0, 1, 1]);
    }

    #[test]
    fn a_single_worker_does_not_forward() {
        let mut workers = workers(1);
        assert!(!workers[0].give(&frame(7), b"frame", false));
    }

    #[test]
    fn frames_for_a_full_queue_are_dropped_and_counted() {
        let mut workers = workers(2);
        for _ in 0..FRAMES_MAX + 5 {
            assert!(workers[0].give(&frame(7), b"frame", false));
        }
        assert_eq!(workers[0].counters().lost, 5);
        let mut count = 0;
        while let Some(got) = receive(&mut workers[1]) {
            workers[1].release(got.id);
            count += 1;
        }
        assert_eq!(count, FRAMES_MAX);
        assert_eq!(workers[1].held.len(), 1, "slots are reused");
    }

    #[test]
    fn the_bytes_that_wait_are_bounded() {
        let mut workers = workers(2);
        let segment = vec![0; 1 << 16];
        for _ in 0..BYTES_MAX / segment.len() {
            assert!(workers[0].give(&frame(7), &segment, false));
        }
        assert_eq!(workers[0].counters().lost, 0);
        assert!(workers[0].give(&frame(7), &segment, false));
        assert_eq!(workers[0].counters().lost, 1);
        let got = receive(&mut workers[1]).unwrap();
        workers[1].release(got.id);
        assert!(workers[0].give(&frame(7), &segment, false));
        assert_eq!(workers[0].counters().lost, 1, "there is room again");
    }

    #[test]
    fn a_forwarded_frame_rings_the_doorbell() {
        let mut workers = workers(2);
        let is_woken = |worker: &WorkerForwarding| {
            descriptor::wait_readable(&[worker.doorbell_fd()], Some(Duration::ZERO)).unwrap()[0]
        };
        assert!(!is_woken(&workers[1]));
        assert!(workers[0].give(&frame(7), b"frame", false));
        assert!(is_woken(&workers[1]));
        let got = receive(&mut workers[1]).unwrap();
        assert_eq!(workers[1].bytes(got.id), Some(&b"frame"[..]));
        assert_eq!(workers[1].bytes(FrameId(7)), None, "a frame of the device");
    }

    #[test]
    fn what_one_worker_knows_to_be_of_another_process_the_last_one_knows_too() {
        let mut workers = workers(3);
        assert!(workers[0].give(&frame(7), b"frame", false));
        for (index, is_known) in [(1, false), (2, true)] {
            let worker = &mut workers[index];
            let got = receive(worker).unwrap();
            assert_eq!(worker.has_no_way(got.id), is_known);
            assert_eq!(worker.give(&got, b"", index == 1), index == 1);
            worker.release(got.id);
        }
        assert!(!workers[0].has_no_way(frame(7).id));
    }
}
