//! Provides stack space for recursion.
//!
//! The parser bounds the nesting of expressions, but the deepest ones may need more stack than the threads of a server
//! have. These few expressions are processed on a thread with a larger stack.

use crate::work;
use std::io;
use std::panic::resume_unwind;
use std::thread::Builder;

/// The stack size in bytes, enough for the deepest expression in an unoptimized build.
const STACK_SIZE: usize = 32 << 20;
/// The number of brackets up to which an expression is processed on the current thread.
const MANY: usize = 48;

/// Whether an expression may nest deeply. Closing brackets are ignored, since they may be inside strings.
pub(crate) fn is_deep(source: &str) -> bool {
    source.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'{' | b'?')).nth(MANY).is_some()
}

/// The nesting up to which evaluations that begin others need no larger stack.
const LITTLE_NESTING: usize = 250;
/// The largest nesting of evaluations that is possible.
const MAX_NESTING: usize = 2_000;

/// Runs evaluations that begin others, with a larger stack if necessary. `nesting` is the sum of
/// [`Program::nesting`](crate::Program::nesting) over the longest chain of them.
///
/// # Errors
/// When the nesting is too large, or when no thread can be started.
pub fn with_room_for<T: Send>(nesting: usize, run: impl FnOnce() -> T + Send) -> io::Result<T> {
    if nesting > MAX_NESTING {
        return Err(io::Error::other("expressions are nested too deeply"));
    }
    with_room(nesting > LITTLE_NESTING, run)
}

/// Runs a function that recurses over an expression; fails if no thread can be started.
pub(crate) fn with_room<T: Send>(deep: bool, run: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !deep {
        return Ok(run());
    }
    // The limit of work belongs to this thread.
    let limit = work::rest();
    let run = || {
        work::carry(limit);
        (run(), work::rest())
    };
    std::thread::scope(|scope| {
        let thread = Builder::new().name("cel".to_owned()).stack_size(STACK_SIZE).spawn_scoped(scope, run)?;
        let (result, rest) = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        work::carry(rest);
        Ok(result)
    })
}
