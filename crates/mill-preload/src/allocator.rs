//! The library's memory is from the C library's allocator, which must not be entered again by a thread that is in it already: handlers
//! of the program wait meanwhile.

use crate::signals::whole::Whole;
use std::alloc::{GlobalAlloc, Layout, System};

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: all is the system's allocator's, with the caller's promises.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _whole = Whole::begin();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _whole = Whole::begin();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let _whole = Whole::begin();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, new_size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _whole = Whole::begin();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) };
    }
}
