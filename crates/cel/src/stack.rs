//! Room for recursion.
//!
//! Expressions nest at most as deep as the parser allows, but what that takes of the stack may be more than the
//! threads of a server have. The few expressions that nest that deep are worked on by a thread with a stack of its own.

use std::io;
use std::panic::resume_unwind;
use std::thread::Builder;

/// Enough for the deepest expression, without optimization.
const STACK_SIZE: usize = 32 << 20;
/// How many brackets an expression may have to be worked on where it is wanted.
const MANY: usize = 48;

/// Whether an expression may nest deep. Closing brackets are not looked at: they may be within strings.
pub(crate) fn is_deep(source: &str) -> bool {
    source.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'{' | b'?')).nth(MANY).is_some()
}

/// Runs something that recurses over an expression; an error if there is no thread to run it.
pub(crate) fn with_room<T: Send>(deep: bool, run: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !deep {
        return Ok(run());
    }
    std::thread::scope(|scope| {
        let thread = Builder::new().name("cel".to_owned()).stack_size(STACK_SIZE).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
