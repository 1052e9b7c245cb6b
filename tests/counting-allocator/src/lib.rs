//! Counts the allocated bytes, for tests that bound memory.
//!
//! A test binary installs it with `#[global_allocator]`. The counts are those of the process: tests that measure run one
//! at a time.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with counters.
pub struct CountingAllocator;

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its nature; this one hands everything on to the system's"
)]
// SAFETY: all calls go to the system's allocator unchanged, and so do its results.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller meets the requirements, which are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The allocated bytes.
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Runs a function; returns its result, and the peak of allocated bytes beyond those that were allocated before.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = run();
    (result, PEAK.load(Ordering::Relaxed).saturating_sub(before))
}
