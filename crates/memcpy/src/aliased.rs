//! Copies between addresses that alias within their pages.

#![expect(unsafe_code, reason = "memcpy works on raw memory")]

use std::{
    arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128, _mm_storeu_si128},
    ffi::c_void,
    ops::RangeInclusive,
};

/// The lengths, in bytes, that glibc copies with `rep movsb`; it stops at the size of a core's cache, or before.
const LENGTHS: RangeInclusive<usize> = 2 << 10..=1 << 20;
const PAGE_BYTES: usize = 4 << 10;
/// A destination that is fewer bytes than these behind the source within a page is slow. Half of it was seen.
const SLOW_BYTES: usize = 64;
/// The bytes of a vector register.
const VECTOR_BYTES: usize = size_of::<__m128i>();
/// The bytes of a round of the loop.
const ROUND_BYTES: usize = 4 * VECTOR_BYTES;

/// C's `memcpy`, for the whole program.
///
/// # Safety
/// That of C's `memcpy`: `source` is readable and `destination` writable for `length` bytes, and they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(
    destination: *mut c_void,
    source: *const c_void,
    length: usize,
) -> *mut c_void {
    let behind = destination.addr().wrapping_sub(source.addr()) % PAGE_BYTES;
    if !LENGTHS.contains(&length) || behind == 0 || behind >= SLOW_BYTES {
        // SAFETY: what memcpy requires is more than what memmove does.
        return unsafe { libc::memmove(destination, source, length) };
    }
    // SAFETY: that of this function, and the length is that of several rounds.
    unsafe { copy_backwards(destination.cast(), source.cast(), length) };
    destination
}

/// Copies from the end to the beginning, so that no load waits for an earlier store that seems to be to the same address. Stores
/// are aligned.
///
/// # Safety
/// That of [`memcpy`], and `length` is at least [`ROUND_BYTES`].
unsafe fn copy_backwards(destination: *mut u8, source: *const u8, length: usize) {
    let load = |at: usize| {
        // SAFETY: the callers below stay within the source: `at` is at most `length - VECTOR_BYTES`.
        unsafe { _mm_loadu_si128(source.add(at).cast()) }
    };
    let store_anywhere = |at: usize, vector: __m128i| {
        // SAFETY: as above, within the destination.
        unsafe { _mm_storeu_si128(destination.add(at).cast(), vector) }
    };
    let last = length - VECTOR_BYTES;
    store_anywhere(last, load(last));
    // The destination is aligned at this place and a round before it.
    let mut left = length - destination.addr().wrapping_add(length) % VECTOR_BYTES;
    while left >= ROUND_BYTES {
        left -= ROUND_BYTES;
        let vectors = [0, 1, 2, 3].map(|index| load(left + index * VECTOR_BYTES));
        for (index, vector) in vectors.into_iter().enumerate().rev() {
            // SAFETY: as above; and `left` is a multiple of a vector from an aligned address.
            unsafe { _mm_store_si128(destination.add(left + index * VECTOR_BYTES).cast(), vector) }
        }
    }
    for index in [3, 2, 1, 0] {
        store_anywhere(index * VECTOR_BYTES, load(index * VECTOR_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that tell where they are.
    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    proptest! {
        #[test]
        fn all_bytes_are_copied_and_no_others_written(
            length in 1_usize..3 * (4 << 10),
            from in 0_usize..PAGE_BYTES,
            behind in 0_usize..2 * SLOW_BYTES,
        ) {
            let source = pattern(from + length);
            let mut copy = vec![0xaa; length + 4 * PAGE_BYTES];
            // The first place behind the margin that is so many bytes behind the source within its page.
            let wanted = source.as_ptr().addr() + from + behind;
            let margin = PAGE_BYTES + (wanted - copy.as_ptr().addr() % PAGE_BYTES) % PAGE_BYTES;
            let (near, far) = (&source[from..], &mut copy[margin..]);
            prop_assert_eq!((far.as_ptr().addr().wrapping_sub(near.as_ptr().addr())) % PAGE_BYTES, behind);
            // SAFETY: both are longer than the length, and do not overlap.
            unsafe { memcpy(far.as_mut_ptr().cast(), near.as_ptr().cast(), length) };
            prop_assert!(copy[margin..margin + length] == *near);
            prop_assert!(copy[..margin].iter().chain(&copy[margin + length..]).all(|byte| *byte == 0xaa));
        }
    }

    #[test]
    fn large_copies_are_whole() {
        for length in [*LENGTHS.end() - 1, *LENGTHS.end(), *LENGTHS.end() + 1] {
            let source = pattern(length);
            let mut copy = vec![0; length + PAGE_BYTES + 9];
            let start = (source.as_ptr().addr() + 9).wrapping_sub(copy.as_ptr().addr()) % PAGE_BYTES;
            let to = &mut copy[start..start + length];
            // SAFETY: both have the length.
            unsafe { memcpy(to.as_mut_ptr().cast(), source.as_ptr().cast(), length) };
            assert!(*to == source);
        }
    }

    #[test]
    fn a_program_that_links_the_crate_copies_with_it() {
        type Function = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
        assert_eq!(libc::memcpy as Function as usize, memcpy as Function as usize);
    }
}
