//! Threads that wait in the kernel for a set that has nothing of the stack, and may get something while they wait: as the process has no stack
//! yet, until another thread listens or connects (Erlang's schedulers).
//!
//! Such a thread is listed. When the set becomes one of the stack's as well (`sets.rs`), an event of the library's ends its wait, which the
//! program does not see: the thread waits anew, for both.

use crate::descriptors::own;
use crate::{originals, stacks};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::epoll_event;
use mill_sys::eventfd;
use mill_tcp::time::Duration;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;

/// Sets that threads wait for, a place for each thread. One that finds none does not hear of the stack until something else ends its wait.
static WAITING: [AtomicI32; PLACES] = [const { AtomicI32::new(NONE) }; PLACES];

const PLACES: usize = 256;

const NONE: c_int = -1;

/// A thread's place, until its wait has ended.
struct Listed(Option<&'static AtomicI32>);

impl Listed {
    fn begin(set: c_int) -> Self {
        let (taken, any) = (Ordering::SeqCst, Ordering::Relaxed);
        let claim = |place: &&AtomicI32| place.compare_exchange(NONE, set, taken, any).is_ok();
        Self(WAITING.iter().find(claim))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(NONE, Ordering::SeqCst);
        }
    }
}

/// Runs a wait of the kernel's. `None` if the set has become the stack's, too.
///
/// # Safety
/// `events` are as many as the wait says that there are.
pub(super) unsafe fn wait(
    (set, limit): (c_int, Option<Duration>),
    events: *mut epoll_event,
    at_kernel: impl FnOnce(Option<Duration>) -> c_int,
) -> Option<c_int> {
    if limit == Some(Duration::ZERO) || !stacks::is_offered() || stacks::is_inside() {
        return Some(at_kernel(limit));
    }
    let listed = Listed::begin(set);
    // It may have become so just before.
    if super::ours(set).is_some() {
        return None;
    }
    let found = at_kernel(limit);
    drop(listed);
    let count = usize::try_from(found).unwrap_or(0);
    if count == 0 {
        return Some(found);
    }
    // SAFETY: the caller's promise.
    let events = unsafe { core::slice::from_raw_parts_mut(events, count) };
    let place = events.iter().position(|event| event.u64 == OURS);
    match place {
        None => Some(found),
        Some(_) if count == 1 => {
            // Of another process which has the set, too, the event stays for a moment.
            if super::ours(set).is_none() {
                thread::park_timeout(PAUSE);
            }
            None
        }
        Some(place) => {
            events.get_mut(place..).unwrap_or_default().rotate_left(1);
            Some(found - 1)
        }
    }
}

/// In a child: the threads are its parent's.
pub(crate) fn forget() {
    for place in &WAITING {
        place.store(NONE, Ordering::Relaxed);
    }
}

/// Ends the waits of threads that wait for this set, which is the stack's as well from now on.
pub(crate) fn end(set: c_int) {
    let is_waiting = || {
        let mut places = WAITING.iter();
        places.any(|place| place.load(Ordering::SeqCst) == set)
    };
    if !is_waiting() {
        return;
    }
    let bell = own::during(eventfd::create);
    let Some(bell) = bell
        .ok()
        .filter(|bell| eventfd::signal(bell.as_fd()).is_ok())
    else {
        return;
    };
    let mut event = epoll_event {
        events: libc::EPOLLIN.cast_unsigned(),
        u64: OURS,
    };
    let number = bell.as_fd().as_raw_fd();
    // SAFETY: the pointer is to a local.
    unsafe { originals::epoll_ctl(set, libc::EPOLL_CTL_ADD, number, &raw mut event) };
    for _ in 0..TRIES {
        if !is_waiting() {
            break;
        }
        thread::park_timeout(PAUSE);
    }
    // SAFETY: the operation takes no event.
    unsafe { originals::epoll_ctl(set, libc::EPOLL_CTL_DEL, number, core::ptr::null_mut()) };
    own::close(bell);
}

/// What the event says, where those of programs have pointers and descriptors.
const OURS: u64 = 0xd3f1_6d69_6c6c_e9a7;

/// How long woken threads may take, of which some wait for a processor.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_micros(100);
