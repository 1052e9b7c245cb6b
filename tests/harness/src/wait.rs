//! Waiting for a condition.

use crate::Error;
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long between two questions: short, since most conditions hold at the first or second one.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer.
///
/// # Errors
/// When there is none in time, naming what was waited for.
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
