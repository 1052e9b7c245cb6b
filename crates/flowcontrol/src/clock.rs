//! The time source, which tests replace.

use jiff::Timestamp;
use std::time::{Duration, Instant};

/// A monotonic clock: the time since a fixed moment. All time in this crate comes from it.
pub trait Clock: Send + Sync {
    /// The time since that moment; it never decreases.
    fn now(&self) -> Duration;
}

/// The time since the clock was created.
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

/// Converts times of a [`Clock`] to wall-clock times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WallClock {
    now: Duration,
    wall: Timestamp,
}

impl WallClock {
    /// A converter for a clock whose present time is `now`.
    pub(crate) fn new(now: Duration) -> WallClock {
        WallClock { now, wall: Timestamp::now() }
    }

    /// The wall-clock time of `then`.
    pub(crate) fn time(&self, then: Duration) -> Timestamp {
        let ago = self.now.saturating_sub(then);
        self.wall - jiff::SignedDuration::try_from(ago).unwrap_or_default()
    }
}
