//! Waits for a condition.

use crate::Error;
use std::{
    thread,
    time::{Duration, Instant},
};

/// The pause between two checks: short, since most conditions hold at the first or second check.
const PAUSE: Duration = Duration::from_millis(10);

/// Checks a condition until it returns a value.
///
/// # Errors
/// When the condition returns no value in time; the message is `what`.
pub fn wait_for<T>(what: &str, time: Duration, mut condition: impl FnMut() -> Option<T>) -> Result<T, Error> {
    let end = Instant::now() + time;
    loop {
        if let Some(answer) = condition() {
            return Ok(answer);
        }
        if Instant::now() >= end {
            return Err(format!("waited {time:?} for {what}").into());
        }
        #[expect(clippy::disallowed_methods, reason = "only threads of tests wait here")]
        thread::sleep(PAUSE);
    }
}
