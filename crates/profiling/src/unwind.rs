//! Stacks of the calling thread.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

/// The most frames of a stack; the outer ones of a deeper stack are left out.
pub(crate) const MAX_DEPTH: usize = 48;
/// The frames of a signal handler, in front of those of the code that it interrupted.
const HANDLER_FRAMES: usize = 8;

/// The addresses of a stack, innermost first: of the calls, not of the instructions that they return to.
pub(crate) struct Stack {
    addresses: [usize; MAX_DEPTH + HANDLER_FRAMES],
    length: usize,
    /// The number of frames in front of the interrupted code.
    interrupted: usize,
}

// The unwinder that the standard library links for panics.
#[expect(unsafe_code, reason = "the unwinder of the C runtime has no safe interface")]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(context: *mut c_void, argument: *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before_instruction: *mut c_int) -> usize;
}

/// The result by which a callback ends the walk.
const END: c_int = 5;

extern "C" fn add_frame(context: *mut c_void, argument: *mut c_void) -> c_int {
    let mut is_interrupted = 0;
    #[expect(unsafe_code, reason = "see `_Unwind_Backtrace`")]
    // SAFETY: the unwinder passes a valid context, and the argument of `capture`, whose stack nothing else refers to.
    let (address, stack) =
        unsafe { (_Unwind_GetIPInfo(context, &mut is_interrupted), &mut *argument.cast::<Stack>()) };
    if address == 0 {
        return END;
    }
    if is_interrupted != 0 {
        stack.interrupted = stack.length;
    }
    let Some(slot) = stack.addresses.get_mut(stack.length) else { return END };
    // A return address may be the first one behind a function that does not return.
    *slot = if is_interrupted != 0 { address } else { address - 1 };
    stack.length += 1;
    0
}

impl Stack {
    /// The stack of the caller. It neither allocates nor locks, so that signal handlers and allocators may call it.
    #[inline(never)]
    pub(crate) fn capture() -> Stack {
        let mut stack = Stack { addresses: [0; MAX_DEPTH + HANDLER_FRAMES], length: 0, interrupted: 0 };
        #[expect(unsafe_code, reason = "see `_Unwind_Backtrace`")]
        // SAFETY: the callback gets a pointer to a stack that outlives the call.
        unsafe {
            _Unwind_Backtrace(add_frame, ptr::from_mut(&mut stack).cast());
        }
        stack
    }

    /// The frames, without `skipped` inner ones and those of a signal handler.
    pub(crate) fn frames(&self, skipped: usize) -> &[usize] {
        let from = if self.interrupted > 0 { self.interrupted } else { skipped };
        let frames = self.addresses.get(from..self.length).unwrap_or_default();
        frames.get(..MAX_DEPTH).unwrap_or(frames)
    }
}
