//! Provides stack space for recursion.
//!
//! The parser bounds the nesting of expressions, but the deepest ones may need more stack than the threads of a server
//! have. These few expressions are processed on a thread with a larger stack.

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

/// Runs a function that recurses over an expression; fails if no thread can be started.
pub(crate) fn with_room<T: Send>(deep: bool, run: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !deep {
        return Ok(run());
    }
    std::thread::scope(|scope| {
        let thread = Builder::new().name("cel".to_owned()).stack_size(STACK_SIZE).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
