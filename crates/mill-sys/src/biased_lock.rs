//! A lock that is biased to one thread: that one takes and releases it by plain loads and stores, and the others pay.
//!
//! The owner of the bias comes in as in Dekker's algorithm, with its costly half moved to the other side:
//!
//! ```text
//! owner                                  visitor, one at a time (a mutex)
//!   is_inside = 1                          is_wanted = 1
//!   (the compiler keeps the order)         membarrier(2)
//!   is_wanted? then out, and the mutex     is_inside? then sleep until it is 0
//!   …                                      …
//!   is_inside = 0                          is_wanted = 0
//!   (the compiler keeps the order)         the mutex is released
//!   is_wanted? then wake
//! ```
//!
//! Dekker's algorithm needs a full barrier between store and load on both sides, so that at least one side sees the other. Here
//! membarrier(2) executes the owner's as well, on the CPU on which that runs: wherever in its program it is then, what precedes is visible to
//! the visitor, and what follows sees `is_wanted`. So the owner either has `is_inside` seen, or sees that it is wanted; and at the end
//! either its leaving is seen, or it sees that it is to wake. On paper: the owner's `compiler_fence` and the visitor's membarrier(2) are the
//! light and the heavy fence of "asymmetric fences" (P1202 of WG21), which order as two `fence(SeqCst)` do. The data itself is passed on by the
//! pairs of `Release` and `Acquire` of the two flags and by the mutex. The idea to give a lock to the thread that
//! takes it anyway is biased locking (Kawachiya, Koseki and Onodera, "Lock Reservation", OOPSLA 2002).
//!
//! A thread that takes the lock many times in a row becomes its owner. `visit` leaves it the bias; another thread's
//! `lock` ends the bias, and the lock is a mutex until a thread becomes owner anew. A bias that has ended is never used
//! again, for its owner may be about to store to it, and be held up there for any time. There are few, so a lock that
//! threads share becomes a mutex for good.

use crate::{futex, membarrier};
use futex_mutex::FutexMutex;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::time::Duration;
use std::{hint, io, thread};

/// What all but the owner take.
mod futex_mutex;

/// The lock, with what it protects. A mutex until [`Self::permit_bias`].
#[derive(Debug)]
#[repr(align(64))]
pub struct BiasedLock<T> {
    /// Which bias is in force, [`NONE`] without one. Changed with the mutex locked and the owner outside.
    current: AtomicUsize,
    biases: [Bias; BIASES],
    mutex: FutexMutex,
    claims: Claims,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has a guard, and only by a guard is the value reached.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// What the owner and its visitors tell each other.
#[derive(Debug)]
struct Bias {
    /// The number of the thread. Only a thread itself writes its own.
    owner: AtomicU64,
    /// 1 while the owner has the lock by the bias. Only the owner writes it.
    is_inside: AtomicU32,
    /// 1 while a thread that has locked the mutex has the lock or waits for it, and for ever when the bias has ended. Only such a thread
    /// writes it.
    is_wanted: AtomicU32,
}

/// Which thread may become owner. Changed with the mutex locked, so that no order is needed.
#[derive(Debug)]
struct Claims {
    is_permitted: AtomicBool,
    /// The thread that has taken the lock last, and how many times in a row.
    thread: AtomicU64,
    row: AtomicU32,
    /// Biases that there have been.
    spent: AtomicUsize,
}

/// The lock, held.
#[derive(Debug)]
pub struct BiasedGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// By which it is held, otherwise by the mutex.
    bias: Option<&'a Bias>,
    /// What it gives out.
    value: PhantomData<&'a mut T>,
    /// It stays with its thread, as one of a mutex does.
    thread: PhantomData<MutexGuard<'a, ()>>,
}

const _: () = assert!(size_of::<BiasedGuard<'static, u64>>() == 2 * size_of::<usize>());

impl<T> BiasedLock<T> {
    pub const fn new(value: T) -> Self {
        Self {
            current: AtomicUsize::new(NONE),
            biases: [const { Bias::new() }; BIASES],
            mutex: FutexMutex::new(),
            claims: Claims::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Threads may become owners from now on. Without membarrier(2) this does nothing, and the lock stays a mutex. System calls.
    pub fn permit_bias(&self) {
        let is_permitted = membarrier::register().is_ok();
        // Earlier or later for other threads makes no difference.
        self.claims
            .is_permitted
            .store(is_permitted, Ordering::Relaxed);
    }

    /// Takes the lock, and ends the bias to another thread. Waits while another thread has it. It panics, or waits for ever, if this one
    /// has it.
    #[inline]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let bias = self.enter();
        if bias.is_none() {
            self.lock_mutex();
        }
        self.guard(bias)
    }

    /// The same, and another thread keeps its bias: for visits that are rare, as each costs a membarrier(2). Always by the mutex,
    /// so that no other thread is halfway in while this one has the lock.
    pub fn visit(&self) -> BiasedGuard<'_, T> {
        self.assert_outside();
        self.mutex.lock();
        if let Some(bias) = self.bias() {
            bias.call_out();
        }
        self.guard(None)
    }

    /// As [`Self::visit`], but `None` if a thread has the lock, also if it is this one.
    pub fn try_visit(&self) -> Option<BiasedGuard<'_, T>> {
        // A first look, so that the owner is seldom interrupted for nothing.
        if self.bias().is_some_and(Bias::is_inside) || !self.mutex.try_lock() {
            return None;
        }
        if let Some(bias) = self.bias() {
            if bias.announce().is_err() {
                // What the owner has stored may become visible later. So the bias is over, which the owner notes itself.
                self.mutex.unlock();
                return None;
            }
            if bias.is_inside() {
                self.leave_mutex();
                return None;
            }
        }
        Some(self.guard(None))
    }

    /// The owner's way in.
    #[inline]
    fn enter(&self) -> Option<&Bias> {
        let bias = self.bias()?;
        (bias.is_own() && bias.enter()).then_some(bias)
    }

    #[inline(never)]
    fn lock_mutex(&self) {
        self.assert_outside();
        self.mutex.lock();
        let claims = &self.claims;
        if let Some(bias) = self.bias() {
            let has_ended = bias.has_ended();
            bias.call_out();
            if has_ended || !bias.is_own() {
                self.current.store(NONE, Ordering::Relaxed);
            }
            if has_ended {
                claims.is_permitted.store(false, Ordering::Relaxed);
            }
        }
        let thread = this_thread();
        if claims.count(thread) && self.bias().is_none() {
            let spent = claims.spent.load(Ordering::Relaxed);
            if let Some(bias) = self.biases.get(spent) {
                bias.give_to(thread);
                self.current.store(spent, Ordering::Relaxed);
                claims.spent.store(spent + 1, Ordering::Relaxed);
            }
        }
    }

    #[inline(never)]
    fn leave_mutex(&self) {
        if let Some(bias) = self.bias() {
            bias.take_back();
        }
        self.mutex.unlock();
    }

    /// The bias in force. Certain with the mutex locked; else certain only for the owner, which made it so.
    #[inline]
    fn bias(&self) -> Option<&Bias> {
        self.biases.get(self.current.load(Ordering::Relaxed))
    }

    fn assert_outside(&self) {
        let has_it = self
            .bias()
            .is_some_and(|bias| bias.is_own() && bias.is_inside());
        assert!(!has_it, "the lock is taken twice by one thread");
    }

    #[inline]
    const fn guard<'a>(&'a self, bias: Option<&'a Bias>) -> BiasedGuard<'a, T> {
        BiasedGuard {
            lock: self,
            bias,
            value: PhantomData,
            thread: PhantomData,
        }
    }
}

impl Bias {
    const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            is_inside: AtomicU32::new(0),
            is_wanted: AtomicU32::new(0),
        }
    }

    #[inline]
    fn is_own(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// `Acquire`: what the owner did inside is done.
    #[inline]
    fn is_inside(&self) -> bool {
        self.is_inside.load(Ordering::Acquire) != 0
    }

    /// The owner takes the lock, unless it has it, or another thread wants it.
    #[inline]
    fn enter(&self) -> bool {
        if self.is_inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.is_inside.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // `Acquire`: what a visitor did is done.
        if self.is_wanted.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.leave();
        false
    }

    #[inline]
    fn leave(&self) {
        self.is_inside.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        if self.is_wanted.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        futex::wake_one(&self.is_inside);
    }

    /// Whether the bias is over, for a thread that has just locked the mutex: those before it have taken their announcements back.
    fn has_ended(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) != 0
    }

    /// The thread that has the mutex wants the lock, and knows whether the owner is inside when this has succeeded. The owner
    /// itself does so as well, lest it come in once more by its bias.
    fn announce(&self) -> io::Result<()> {
        self.is_wanted.store(1, Ordering::Relaxed);
        match self.is_own() {
            true => Ok(()),
            false => membarrier::barrier(),
        }
    }

    /// The calling thread becomes the owner, and comes in by the bias when it has left the mutex.
    fn give_to(&self, thread: u64) {
        self.is_wanted.store(1, Ordering::Relaxed);
        self.owner.store(thread, Ordering::Relaxed);
    }

    /// Waits until the owner is not inside, and does not come in.
    #[cold]
    fn call_out(&self) {
        if self.announce().is_err() {
            // Forbidden since it was registered (seccomp(2)). What the owner has stored becomes visible without a barrier as well, soon: a store
            // waits in its CPU for nanoseconds. No model of memory says so.
            thread::park_timeout(PAUSE);
        }
        for _ in 0..SPINS {
            if !self.is_inside() {
                return;
            }
            hint::spin_loop();
        }
        while self.is_inside() {
            futex::wait(&self.is_inside, 1);
        }
    }

    /// The owner may come in again, and sees what was done meanwhile.
    fn take_back(&self) {
        self.is_wanted.store(0, Ordering::Release);
    }
}

impl Claims {
    const fn new() -> Self {
        Self {
            is_permitted: AtomicBool::new(false),
            thread: AtomicU64::new(0),
            row: AtomicU32::new(0),
            spent: AtomicUsize::new(0),
        }
    }

    /// A thread takes the lock; whether it may become the owner.
    fn count(&self, thread: u64) -> bool {
        let row = match self.thread.load(Ordering::Relaxed) == thread {
            true => self.row.load(Ordering::Relaxed).saturating_add(1),
            false => 1,
        };
        self.thread.store(thread, Ordering::Relaxed);
        self.row.store(row, Ordering::Relaxed);
        row > ROW && self.is_permitted.load(Ordering::Relaxed)
    }
}

impl<T> BiasedGuard<'_, T> {
    /// In a child after fork(2), whose only thread may become owner as in a new process: the lock forgets its owners. The guard must be one of a
    /// visit, otherwise this does nothing.
    ///
    /// # Safety
    /// No other thread runs in this process's memory.
    pub unsafe fn restart(&mut self) {
        if self.bias.is_some() {
            return;
        }
        self.lock.current.store(NONE, Ordering::Relaxed);
        for bias in &self.lock.biases {
            bias.owner.store(0, Ordering::Relaxed);
            bias.is_inside.store(0, Ordering::Relaxed);
            bias.is_wanted.store(0, Ordering::Relaxed);
        }
        let claims = &self.lock.claims;
        claims.row.store(0, Ordering::Relaxed);
        claims.spent.store(0, Ordering::Relaxed);
        if claims.is_permitted.load(Ordering::Relaxed) {
            self.lock.permit_bias();
        }
    }
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held while this guard lives, and it gives the value out by shared references meanwhile.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held while this guard lives, and it is borrowed exclusively for the reference.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.bias {
            Some(bias) => bias.leave(),
            None => self.lock.leave_mutex(),
        }
    }
}

thread_local! {
    /// The number of this thread, 0 before it is asked for.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread of this process has, also no later one: the kernel's are given out again.
#[inline]
fn this_thread() -> u64 {
    match NUMBER.get() {
        0 => number_thread(),
        number => number,
    }
}

#[cold]
fn number_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

/// How many owners a lock may have, one after another: one that its threads share is a mutex at last, and does not change back and forth.
const BIASES: usize = 3;

const NONE: usize = BIASES;

/// How many times in a row a thread takes the lock before it becomes the owner: more than for one connection or two, as a main thread opens
/// before it starts the one that works; few enough to pass in milliseconds.
const ROW: u32 = 1000;

/// Looks before a visitor sleeps; the owner is inside for less than a microsecond, mostly.
const SPINS: u32 = 100;

/// How long a visitor waits where there is no barrier.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
