//! Samples the memory in use, by an allocator around the real one.

use crate::{
    profile::{Builder, ValueType},
    unwind::{MAX_DEPTH, Stack},
};
use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    time::SystemTime,
};

/// The mean of the bytes between two samples. Four times Go's, since walking a stack without frame pointers costs more.
const PERIOD: u32 = 2 << 20;
/// Samples are found by the hash of their address in one of these buckets…
const BUCKETS: usize = 2048;
/// … which has so many places. A sample that finds its bucket full is dropped.
const PLACES: usize = 8;

static ENABLED: AtomicBool = AtomicBool::new(false);
/// The samples in each bucket: one small table that a release looks into.
static COUNTS: [AtomicU8; BUCKETS] = [const { AtomicU8::new(0) }; BUCKETS];
/// The samples. Pages of the table that no sample uses take no memory.
static SAMPLES: [[Sample; PLACES]; BUCKETS] = [const { [const { Sample::new() }; PLACES] }; BUCKETS];

/// An allocation that is in use.
struct Sample {
    /// Zero in a free place.
    address: AtomicUsize,
    size: AtomicUsize,
    stack: [AtomicUsize; MAX_DEPTH],
}

impl Sample {
    const fn new() -> Sample {
        Sample {
            address: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            stack: [const { AtomicUsize::new(0) }; MAX_DEPTH],
        }
    }
}

thread_local! {
    /// The bytes until this thread's next sample.
    static LEFT: Cell<i64> = const { Cell::new(NOT_DRAWN) };
}

/// The distance of a thread that has not drawn one: its first allocation is no more likely to be a sample than others.
const NOT_DRAWN: i64 = i64::MIN / 2;

/// Begins to sample. Allocations before are not in the profiles.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Whether the process samples.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// An allocator that samples the allocations of another one, once [`enable`] was called.
pub struct Sampled<A>(pub A);

#[expect(unsafe_code, reason = "allocators are unsafe")]
// SAFETY: all allocations come from the inner allocator and go back to it, with the same layouts.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Sampled<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let address = unsafe { self.0.alloc(layout) };
        allocated(address, layout.size());
        address
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let address = unsafe { self.0.alloc_zeroed(layout) };
        allocated(address, layout.size());
        address
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        released(address);
        // SAFETY: as above.
        let address = unsafe { self.0.realloc(address, layout, size) };
        allocated(address, size);
        address
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // In front of the release: behind it, another thread may have the same address.
        released(address);
        // SAFETY: as above.
        unsafe { self.0.dealloc(address, layout) }
    }
}

#[inline]
fn allocated(address: *mut u8, size: usize) {
    let is_due = LEFT.try_with(|left| {
        let rest = left.get() - i64::try_from(size).unwrap_or(i64::MAX);
        left.set(rest);
        rest < 0
    });
    if is_due == Ok(true) {
        sample(address, size);
    }
}

#[inline]
fn released(address: *mut u8) {
    let bucket = bucket_of(address.addr());
    if COUNTS.get(bucket).is_some_and(|count| count.load(Ordering::Relaxed) > 0) {
        forget(address.addr(), bucket);
    }
}

#[inline]
fn bucket_of(address: usize) -> usize {
    (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - BUCKETS.ilog2())
}

#[cold]
#[inline(never)]
fn sample(address: *mut u8, size: usize) {
    // The distance to the next sample is random, so that regular patterns are not missed.
    let left = LEFT.try_with(|left| left.replace(distance()));
    if left.is_ok_and(|left| left < NOT_DRAWN / 2) {
        return;
    }
    let address = address.addr();
    if address == 0 || !is_enabled() {
        return;
    }
    let bucket = bucket_of(address);
    let (Some(places), Some(count)) = (SAMPLES.get(bucket), COUNTS.get(bucket)) else { return };
    let stack = Stack::capture();
    for place in places {
        // The mark keeps others from the place until its contents are complete.
        if place.address.compare_exchange(0, usize::MAX, Ordering::Acquire, Ordering::Relaxed).is_err() {
            continue;
        }
        count.fetch_add(1, Ordering::Relaxed);
        place.size.store(size, Ordering::Relaxed);
        // The frames of capturing and of this function are no part of the program.
        let frames = stack.frames(2);
        for (slot, frame) in place.stack.iter().zip(frames.iter().copied().chain(std::iter::repeat(0))) {
            slot.store(frame, Ordering::Relaxed);
        }
        place.address.store(address, Ordering::Release);
        return;
    }
}

#[cold]
fn forget(address: usize, bucket: usize) {
    let (Some(places), Some(count)) = (SAMPLES.get(bucket), COUNTS.get(bucket)) else { return };
    if let Some(place) = places.iter().find(|place| place.address.load(Ordering::Relaxed) == address) {
        place.address.store(0, Ordering::Release);
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An exponentially distributed distance.
fn distance() -> i64 {
    static STATE: AtomicU64 = AtomicU64::new(0x2545_F491_4F6C_DD1D);
    let mut bits = STATE.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let uniform = f64::from(u32::try_from(bits >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "the value is small")]
    let distance = (-(uniform.max(1e-9)).ln() * f64::from(PERIOD)) as i64;
    distance
}

/// The number of samples.
pub fn samples() -> usize {
    COUNTS.iter().map(|count| usize::from(count.load(Ordering::Relaxed))).sum()
}

/// The profile of the memory in use. It reads the symbols of the binary, and may take a second.
pub fn profile() -> Vec<u8> {
    let types = [ValueType::new("inuse_objects", "count"), ValueType::new("inuse_space", "bytes")];
    let mut builder = Builder::new(&types, &ValueType::new("space", "bytes"), i64::from(PERIOD));
    builder.set_time(SystemTime::now(), None);
    for place in SAMPLES.iter().flatten() {
        let address = place.address.load(Ordering::Acquire);
        if matches!(address, 0 | usize::MAX) {
            continue;
        }
        let size = place.size.load(Ordering::Relaxed);
        let stack: Vec<usize> = place.stack.iter().map(|frame| frame.load(Ordering::Relaxed)).collect();
        // A place that was given away meanwhile may have parts of two samples.
        if place.address.load(Ordering::Acquire) != address {
            continue;
        }
        let stack: Vec<usize> = stack.into_iter().take_while(|frame| *frame != 0).collect();
        // A sample stands for all allocations of its size that were not sampled.
        let size = u32::try_from(size).map_or(f64::from(u32::MAX), f64::from);
        let weight = 1.0 / (1.0 - (-size / f64::from(PERIOD)).exp()).max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "a conversion of a large value saturates")]
        builder.add(&stack, &[weight.round() as i64, (size * weight).round() as i64]);
    }
    builder.encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::decode;
    use std::alloc::System;

    #[global_allocator]
    static ALLOCATOR: Sampled<System> = Sampled(System);

    #[inline(never)]
    fn keep(megabytes: usize) -> Vec<Vec<u8>> {
        (0..megabytes * 16).map(|_| std::hint::black_box(vec![1; 64 << 10])).collect()
    }

    fn kept() -> i64 {
        decode(&profile()).samples_with("heap5tests4keep").iter().map(|values| values[1]).sum()
    }

    #[test]
    fn memory_is_in_the_profile_while_it_is_in_use() {
        enable();
        let memory = keep(64);
        let found = kept();
        assert!((32 << 20..128 << 20).contains(&found), "{found}");
        assert!(samples() > 0);
        drop(memory);
        assert!(kept() < 4 << 20, "{}", kept());
    }

    #[test]
    fn the_first_allocation_of_a_thread_is_a_sample_no_more_often_than_others() {
        enable();
        let before = samples();
        let held = std::sync::Arc::new(std::sync::Barrier::new(101));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let held = held.clone();
                std::thread::spawn(move || {
                    let memory = std::hint::black_box(vec![1_u8; 16]);
                    held.wait();
                    held.wait();
                    drop(memory);
                })
            })
            .collect();
        held.wait();
        // A hundred threads take a few samples' worth of memory, not one each.
        assert!(samples() - before < 20, "{}", samples() - before);
        held.wait();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
