//! Mutexes of the library.

use crate::signals::whole::Whole;
use core::any::Any;
use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex for all threads of the process. Handlers of the program wait while their thread has it.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Has the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct LockGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    /// Until the mutex is released, which the field above does.
    _whole: Whole,
}

/// Has a lock of any kind until it is dropped.
pub(crate) type Locked = Box<dyn Any>;

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        let whole = Whole::begin();
        LockGuard {
            guard: self.0.lock().unwrap_or_else(PoisonError::into_inner),
            _whole: whole,
        }
    }

    /// `None` if another thread has it.
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        let whole = Whole::begin();
        Some(LockGuard {
            guard: self.0.try_lock().ok()?,
            _whole: whole,
        })
    }
}

impl<'a, T> LockGuard<'a, T> {
    /// Handlers of the program wait no more. One that needs the same lock would wait for its own thread.
    pub(crate) fn interruptible(self) -> MutexGuard<'a, T> {
        self.guard
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
