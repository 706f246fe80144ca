//! What has pages of its own.

use core::ptr::null_mut;
use std::alloc::Layout;

pub(super) const fn is(layout: Layout) -> bool {
    layout.size() >= LEAST && layout.align() <= PAGE
}

/// Zeroed.
pub(super) fn alloc(size: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new piece of memory at any address.
    let found = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
    match found {
        libc::MAP_FAILED => null_mut(),
        found => found.cast(),
    }
}

/// # Safety
/// As `GlobalAlloc::realloc`, from large to large.
pub(super) unsafe fn realloc(at: *mut u8, size: usize, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let found = unsafe { libc::mremap(at.cast(), size, new_size, libc::MREMAP_MAYMOVE) };
    match found {
        libc::MAP_FAILED => null_mut(),
        found => found.cast(),
    }
}

/// # Safety
/// As `GlobalAlloc::dealloc`.
pub(super) unsafe fn dealloc(at: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(at.cast(), size) };
}

/// Where the C library begins with that (`M_MMAP_THRESHOLD`).
const LEAST: usize = 128 << 10;

/// No page is smaller.
const PAGE: usize = 4096;
