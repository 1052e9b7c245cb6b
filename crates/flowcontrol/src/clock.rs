//! The time, which tests make themselves.

use jiff::Timestamp;
use std::time::{Duration, Instant};

/// Tells the time since some moment that never changes. Everything in this crate that depends on time is told it.
pub trait Clock: Send + Sync {
    /// The time since that moment; it never goes back.
    fn now(&self) -> Duration;
}

/// The time since the clock was made.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    origin: Instant,
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock { origin: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// What o'clock it was at a time of a clock that shows `now` at the moment.
pub(crate) fn wall_time(now: Duration, then: Duration) -> Timestamp {
    let ago = now.saturating_sub(then);
    Timestamp::now() - jiff::SignedDuration::try_from(ago).unwrap_or_default()
}
