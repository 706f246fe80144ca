//! A mutex without a guard, which the guard of the lock stands for: so that one is two pointers, and stays in registers.

use super::SPINS;
use crate::futex;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

/// One number, as in "Futexes Are Tricky" (Drepper, 2011), where it is the third mutex.
#[derive(Debug)]
pub(super) struct FutexMutex(AtomicU32);

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// The one that unlocks it wakes another one.
const AWAITED: u32 = 2;

impl FutexMutex {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        let locked = self
            .0
            .compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        locked.is_ok()
    }

    #[inline]
    pub(super) fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            match self.0.load(Ordering::Relaxed) {
                FREE if self.try_lock() => return,
                // Another one sleeps already: it takes long.
                AWAITED => break,
                _ => hint::spin_loop(),
            }
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            futex::wait(&self.0, AWAITED);
        }
    }

    /// By the thread that has locked it.
    #[inline]
    pub(super) fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            futex::wake_one(&self.0);
        }
    }
}
