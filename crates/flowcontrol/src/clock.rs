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

/// Tells what o'clock it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WallClock {
    now: Duration,
    wall: Timestamp,
}

impl WallClock {
    /// A clock for times of another one that shows `now` at the moment.
    pub(crate) fn new(now: Duration) -> WallClock {
        WallClock { now, wall: Timestamp::now() }
    }

    /// What o'clock it was then.
    pub(crate) fn time(&self, then: Duration) -> Timestamp {
        let ago = self.now.saturating_sub(then);
        self.wall - jiff::SignedDuration::try_from(ago).unwrap_or_default()
    }
}
