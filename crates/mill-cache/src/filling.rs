//! A fill under way: one request asks the origin, others wait until its head is known.

use std::sync::{Arc, Mutex, atomic::AtomicBool};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::key::Key;
use crate::ledger::Reservation;
use crate::lock::locked;
use crate::object::Object;

/// Memory that a fill without content counts beside its key.
pub(crate) const FILLING_OVERHEAD: u64 = 256;

/// The claim on a key, from the miss to the head of the answer.
#[derive(Debug)]
pub(crate) struct Filling<M> {
    pub(crate) key: Box<[u8]>,
    pub(crate) hash: u64,
    /// The last purge before it was claimed.
    pub(crate) born: u64,
    pub(crate) since: Duration,
    /// Its key was purged meanwhile: what it brings is not kept.
    pub(crate) is_purged: AtomicBool,
    progress: Mutex<Progress<M>>,
    _reservation: Reservation,
}

#[derive(Debug)]
struct Progress<M> {
    head: Option<Head<M>>,
    waiters: Vec<Option<Waiter>>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Waiter {
    waker: Option<Waker>,
}

/// What the fill came to, for those that waited.
#[derive(Debug)]
pub enum Head<M> {
    /// There is an object, whose content may still arrive. Whether it fits the request is the caller's question.
    Stored(Arc<Object<M>>),
    /// The answer is not stored: each request asks by itself.
    NotStored,
    /// The filler is gone without an answer, or its answer was purged: claim again.
    Failed,
}

impl<M> Clone for Head<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Stored(object) => Self::Stored(object.clone()),
            Self::NotStored => Self::NotStored,
            Self::Failed => Self::Failed,
        }
    }
}

impl<M> Filling<M> {
    pub(crate) fn new(key: Key<'_>, born: u64, since: Duration, reservation: Reservation) -> Self {
        Self {
            key: key.bytes().into(),
            hash: key.hash(),
            born,
            since,
            is_purged: AtomicBool::new(false),
            progress: Mutex::new(Progress {
                head: None,
                waiters: Vec::new(),
                waiting: 0,
            }),
            _reservation: reservation,
        }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key::known(self.hash, &self.key)
    }

    /// One more waiter, if there are fewer than `most`.
    pub(crate) fn join(self: &Arc<Self>, most: usize) -> Option<Waiting<M>> {
        let mut progress = locked(&self.progress);
        if progress.waiting >= most {
            return None;
        }
        progress.waiting += 1;
        let free = progress.waiters.iter().position(Option::is_none);
        let number = free.unwrap_or(progress.waiters.len());
        match progress.waiters.get_mut(number) {
            Some(place) => *place = Some(Waiter::default()),
            None => progress.waiters.push(Some(Waiter::default())),
        }
        drop(progress);
        Some(Waiting {
            filling: self.clone(),
            number,
        })
    }

    /// Tells all waiters what it came to; only the first call counts.
    pub(crate) fn settle(&self, head: Head<M>) {
        let mut progress = locked(&self.progress);
        if progress.head.is_some() {
            return;
        }
        progress.head = Some(head);
        let waiters = progress.waiters.iter_mut().flatten();
        let wakers: Vec<Waker> = waiters.filter_map(|waiter| waiter.waker.take()).collect();
        drop(progress);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A request that waits for the fill of another. Dropped, it does not wait any more.
#[derive(Debug)]
pub struct Waiting<M> {
    filling: Arc<Filling<M>>,
    number: usize,
}

impl<M> Waiting<M> {
    /// When the fill was claimed: how long to wait is the caller's decision.
    pub fn since(&self) -> Duration {
        self.filling.since
    }

    /// What the fill came to; until then `waker`, which replaces the one before, is woken once it is known.
    pub fn poll_head(&mut self, waker: &Waker) -> Poll<Head<M>> {
        let mut progress = locked(&self.filling.progress);
        if let Some(head) = &progress.head {
            return Poll::Ready(head.clone());
        }
        let waiter = progress.waiters.get_mut(self.number);
        let stale = waiter.and_then(|waiter| waiter.as_mut()?.waker.replace(waker.clone()));
        drop(progress);
        // That may run code of the caller, which must not find the lock taken.
        drop(stale);
        Poll::Pending
    }
}

impl<M> Drop for Waiting<M> {
    fn drop(&mut self) {
        let mut progress = locked(&self.filling.progress);
        let waiter = progress.waiters.get_mut(self.number).and_then(Option::take);
        progress.waiting -= 1;
        drop(progress);
        drop(waiter);
    }
}
