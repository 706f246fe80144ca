//! Memory for packets: a mempool of mbufs.

use super::layout::{HEADROOM, mempool};
use super::library::Library;
use super::packet::Packet;
use std::ffi::{CString, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A pool, which lives as long as any packet of it.
#[derive(Debug)]
pub(super) struct Pool {
    pool: NonNull<c_void>,
    library: &'static Library,
}

// SAFETY: a pool's operations may be called by several threads at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool of so many packets, each in one piece with room for so many bytes, near the processors of this socket.
    pub(super) fn new(
        library: &'static Library,
        count: u32,
        room_bytes: u16,
        socket: c_int,
    ) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("mill{number}")).ok()?;
        let room = room_bytes.checked_add(HEADROOM)?;
        // SAFETY: the environment is there; numbers, and a name that ends with a zero, which is copied.
        let pool = unsafe { (library.pool_create)(name.as_ptr(), count, CACHED, 0, room, socket) };
        NonNull::new(pool).map(|pool| Self { pool, library })
    }

    pub(super) fn as_ptr(&self) -> *mut c_void {
        self.pool.as_ptr()
    }

    /// Takes packets out, as many at once as there is room for; none where there are not so many.
    pub(super) fn take(&self, into: &mut Vec<Packet>) {
        let mut places = [std::ptr::null_mut::<c_void>(); TAKEN];
        let Some(dequeue) = self.dequeue() else {
            return;
        };
        let count = u32::try_from(TAKEN).unwrap_or_default();
        // SAFETY: the pool's own function, with a place for each.
        if unsafe { dequeue(self.pool.as_ptr(), places.as_mut_ptr(), count) } != 0 {
            return;
        }
        for mbuf in places.into_iter().filter_map(NonNull::new) {
            // SAFETY: an mbuf of the pool, in one piece, is ours from now on.
            let mut packet = unsafe { Packet::from_raw(mbuf) };
            packet.reset();
            into.push(packet);
        }
    }

    /// What the pool's driver takes objects out by (`rte_mempool_ops_dequeue_bulk`).
    fn dequeue(&self) -> Option<Dequeue> {
        let index = self.pool.as_ptr().wrapping_byte_add(mempool::OPS_INDEX);
        // SAFETY: a mempool has a number at this offset (`layout`), which does not change.
        let index = unsafe { index.cast::<i32>().read() };
        let index = usize::try_from(index)
            .ok()
            .filter(|index| *index < mempool::OPS_COUNT)?;
        let offset = mempool::OPS + index * mempool::OPS_BYTES + mempool::DEQUEUE;
        let operation = self.library.pool_operations.at(offset);
        // SAFETY: the table has so many entries, each with a pointer at this offset, which may be null.
        unsafe { operation.cast::<Option<Dequeue>>().read() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the pool is there.
        let used = unsafe { (self.library.pool_in_use)(self.pool.as_ptr()) };
        // A driver may have kept some: the memory stays theirs.
        if used == 0 {
            // SAFETY: no packet of it is in use, and no other value has the pool.
            unsafe { (self.library.pool_free)(self.pool.as_ptr()) };
        }
    }
}

type Dequeue = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, u32) -> c_int;

/// Packets that are taken at once.
const TAKEN: usize = 32;

/// Packets that DPDK keeps for each thread beside the pool; its own programs have 250 or 256.
const CACHED: u32 = 256;
