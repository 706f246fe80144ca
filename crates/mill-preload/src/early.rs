//! Sockets that an epoll set watches before they are connected: the kernel's set has them, and with connect(2) they become the
//! stack's.

use crate::lock::{Lock, LockGuard, Locked};
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::epoll_event;
use std::collections::BTreeMap;

/// How a set watches a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) set: c_int,
    pub(crate) event: epoll_event,
}

/// By descriptor.
static WATCHED: Lock<BTreeMap<c_int, Vec<Watched>>> = Lock::new(BTreeMap::new());

/// How many descriptors that are: most programs have none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(table())
}

fn table() -> LockGuard<'static, BTreeMap<c_int, Vec<Watched>>> {
    WATCHED.lock()
}

/// A set watches a socket that is not connected.
pub(crate) fn add(fd: c_int, watched: Watched) {
    let mut table = table();
    table.entry(fd).or_default().push(watched);
    COUNT.store(table.len(), Ordering::Relaxed);
}

/// A set watches it otherwise; `None` for no more.
pub(crate) fn change(fd: c_int, set: c_int, event: Option<epoll_event>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut table = table();
    let Some(watches) = table.get_mut(&fd) else {
        return;
    };
    match event {
        Some(event) => {
            for watched in watches.iter_mut().filter(|watched| watched.set == set) {
                watched.event = event;
            }
        }
        None => watches.retain(|watched| watched.set != set),
    }
    if watches.is_empty() {
        table.remove(&fd);
    }
    COUNT.store(table.len(), Ordering::Relaxed);
}

/// What watches a descriptor, which is closed or connected now.
pub(crate) fn take(fd: c_int) -> Vec<Watched> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Vec::new();
    }
    let mut table = table();
    let found = table.remove(&fd).unwrap_or_default();
    COUNT.store(table.len(), Ordering::Relaxed);
    found
}
