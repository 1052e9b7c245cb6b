//! Work: seats multiplied by time.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub, SubAssign},
    time::Duration,
};

/// An amount of work, and a point in virtual time. The unit is a hundred-millionth of a seat-second; the range is far
/// beyond a server's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SeatSeconds(i128);

/// The units in a seat-second.
const SCALE: f64 = 1e8;
/// The units in a seat-second, as an integer.
const UNITS: i128 = 100_000_000;

impl SeatSeconds {
    /// More than any amount of work.
    pub const MAX: SeatSeconds = SeatSeconds(i128::MAX);

    /// The work of `seats` seats for `duration`. Seats may be fractional.
    pub fn of(seats: f64, duration: Duration) -> SeatSeconds {
        SeatSeconds((seats * duration.as_secs_f64() * SCALE).round() as i128)
    }

    /// The time that `seats` seats take for this work.
    pub fn duration_per_seat(self, seats: u64) -> Duration {
        if seats == 0 || self.0 <= 0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(self.as_f64() / seats as f64).unwrap_or(Duration::MAX)
    }

    /// In seat-seconds, with less precision.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE
    }
}

impl Add for SeatSeconds {
    type Output = SeatSeconds;

    fn add(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.saturating_add(other.0))
    }
}

impl Sub for SeatSeconds {
    type Output = SeatSeconds;

    fn sub(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: SeatSeconds) {
        *self = *self + other;
    }
}

impl SubAssign for SeatSeconds {
    fn sub_assign(&mut self, other: SeatSeconds) {
        *self = *self - other;
    }
}

/// The format of the debug endpoints, such as `0.00300000ss`.
impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let units = self.0.unsigned_abs();
        let whole = UNITS.unsigned_abs();
        write!(f, "{sign}{}.{:08}ss", units / whole, units % whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seats_times_time() {
        let work = SeatSeconds::of(2.5, Duration::from_millis(4));
        assert_eq!(work.to_string(), "0.01000000ss");
        assert_eq!(work.duration_per_seat(5), Duration::from_millis(2));
        assert_eq!((SeatSeconds::default() - work).to_string(), "-0.01000000ss");
        assert_eq!(SeatSeconds::of(12.0, Duration::from_secs(3)).to_string(), "36.00000000ss");
        assert_eq!(SeatSeconds::default().duration_per_seat(0), Duration::ZERO);
    }
}
