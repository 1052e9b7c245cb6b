//! Estimates quantiles of the durations of the last hours.
//!
//! Durations are counted in classes whose bounds grow by a constant factor, so that a quantile has a bounded relative
//! error, and memory does not depend on the number of durations. Five windows of an hour each make the counts forget:
//! a quantile is that of the last four to five hours, as in the reference.

use std::time::{Duration, Instant};

const WINDOWS: usize = 5;
const WINDOW: Duration = HOUR;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// The lower bound of the second class, in seconds.
const FIRST: f64 = 1e-6;
/// The classes of each power of two: a quantile has a relative error of at most 2^(1/16), or 4.5 %.
const CLASSES_PER_OCTAVE: f64 = 8.0;
/// The last class begins at more than two minutes.
const CLASSES: usize = 8 * 27;

/// Durations of one kind.
#[derive(Debug)]
pub(super) struct DurationSummary {
    count: u64,
    sum: Duration,
    /// The counts of each window by class; a window without durations has none.
    windows: [Option<Box<[u32; CLASSES]>>; WINDOWS],
    /// The window of the present.
    current: usize,
    /// The beginning of the window of the present.
    began: Instant,
}

impl DurationSummary {
    /// No durations yet.
    pub(super) fn new(now: Instant) -> DurationSummary {
        DurationSummary { count: 0, sum: Duration::ZERO, windows: Default::default(), current: 0, began: now }
    }

    /// The number of all durations, however old.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations, however old.
    pub(super) fn sum(&self) -> Duration {
        self.sum
    }

    /// Adds a duration.
    pub(super) fn observe(&mut self, now: Instant, duration: Duration) {
        self.forget_old(now);
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
        if let Some(window) = self.windows.get_mut(self.current) {
            let classes = window.get_or_insert_with(|| Box::new([0; CLASSES]));
            if let Some(count) = classes.get_mut(class(duration)) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// The quantiles of the last hours; `None` if there were no durations.
    pub(super) fn quantiles<const N: usize>(
        &mut self,
        now: Instant,
        quantiles: [f64; N],
    ) -> [Option<Duration>; N] {
        self.forget_old(now);
        let mut counts = [0_u64; CLASSES];
        for window in self.windows.iter().flatten() {
            for (sum, count) in counts.iter_mut().zip(window.iter()) {
                *sum += u64::from(*count);
            }
        }
        let total: u64 = counts.iter().sum();
        quantiles.map(|quantile| {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rank needs no more precision, and is between 0 and the number of durations"
            )]
            let rank = (total as f64 * quantile).ceil() as u64;
            let mut seen = 0;
            let class = counts.iter().position(|count| {
                seen += count;
                *count > 0 && seen >= rank
            })?;
            Some(middle(class))
        })
    }

    fn forget_old(&mut self, now: Instant) {
        let mut passed = 0;
        while now.saturating_duration_since(self.began) >= WINDOW {
            if passed == WINDOWS {
                // All windows are empty.
                self.began = now;
                return;
            }
            passed += 1;
            self.began += WINDOW;
            self.current = (self.current + 1) % WINDOWS;
            if let Some(window) = self.windows.get_mut(self.current) {
                *window = None;
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and the place is a small number"
)]
fn class(duration: Duration) -> usize {
    let place = (duration.as_secs_f64() / FIRST).log2() * CLASSES_PER_OCTAVE;
    // The logarithm of a very short duration is negative.
    ((place + 1.0).max(0.0) as usize).min(CLASSES - 1)
}

/// The middle of a class, on a logarithmic scale.
fn middle(class: usize) -> Duration {
    let class = f64::from(u32::try_from(class).unwrap_or(u32::MAX));
    let octaves = (class - 0.5) / CLASSES_PER_OCTAVE;
    Duration::try_from_secs_f64(FIRST * octaves.exp2()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_a_bounded_relative_error() {
        let start = Instant::now();
        let mut summary = DurationSummary::new(start);
        assert_eq!(summary.quantiles(start, [0.5]), [None]);
        for micros in 1..=10_000 {
            summary.observe(start, Duration::from_micros(micros));
        }
        let expected = [5_000.0, 9_000.0, 9_900.0];
        for (found, expected) in summary.quantiles(start, [0.5, 0.9, 0.99]).into_iter().zip(expected) {
            let ratio = found.unwrap().as_secs_f64() * 1e6 / expected;
            assert!((0.95..1.05).contains(&ratio), "{found:?} for {expected} us");
        }
        assert_eq!((summary.count(), summary.sum()), (10_000, Duration::from_micros(50_005_000)));
    }

    #[test]
    fn extreme_durations_have_classes() {
        let start = Instant::now();
        let mut summary = DurationSummary::new(start);
        for duration in [Duration::ZERO, HOUR * 24] {
            summary.observe(start, duration);
        }
        let [low, high] = summary.quantiles(start, [0.5, 1.0]).map(Option::unwrap);
        assert!(low <= Duration::from_micros(1) && high > Duration::from_secs(100), "{low:?} {high:?}");
    }

    #[test]
    fn durations_are_forgotten_after_five_hours() {
        let start = Instant::now();
        let mut summary = DurationSummary::new(start);
        summary.observe(start, Duration::from_millis(1));
        let median =
            |summary: &mut DurationSummary, hours: u32| summary.quantiles(start + HOUR * hours, [0.5])[0];
        assert!(median(&mut summary, 4).is_some());
        assert!(median(&mut summary, 5).is_none());
        summary.observe(start + HOUR * 1000, Duration::from_millis(1));
        assert!(median(&mut summary, 1001).is_some() && median(&mut summary, 1006).is_none());
        assert_eq!(summary.count(), 2);
    }
}
