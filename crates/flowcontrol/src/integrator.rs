//! Time-weighted averages of a value that changes in steps.

use std::time::Duration;

/// Integrates a value over time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integrator {
    last: Duration,
    value: f64,
    seconds: f64,
    first_moment: f64,
    second_moment: f64,
    max: f64,
}

/// The statistics of the value since the last reset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observed {
    /// The observed time, in seconds.
    pub(crate) seconds: f64,
    /// The average, weighted by time.
    pub(crate) average: f64,
    /// The standard deviation, weighted by time.
    pub(crate) deviation: f64,
    /// The maximum.
    pub(crate) max: f64,
}

impl Integrator {
    /// An integrator of a value that is zero now.
    pub(crate) fn new(now: Duration) -> Integrator {
        Integrator { last: now, value: 0.0, seconds: 0.0, first_moment: 0.0, second_moment: 0.0, max: 0.0 }
    }

    /// Sets the value from now on.
    pub(crate) fn set(&mut self, now: Duration, value: f64) {
        self.advance(now);
        self.value = value;
        self.max = self.max.max(value);
    }

    /// Returns the statistics, and starts again with the present value.
    pub(crate) fn reset(&mut self, now: Duration) -> Observed {
        self.advance(now);
        let mut observed =
            Observed { seconds: self.seconds, average: self.value, deviation: 0.0, max: self.max };
        if self.seconds > 0.0 {
            observed.average = self.first_moment / self.seconds;
            let variance = self.second_moment / self.seconds - observed.average * observed.average;
            observed.deviation = variance.max(0.0).sqrt();
        }
        *self = Integrator { value: self.value, max: self.value, ..Integrator::new(now) };
        observed
    }

    fn advance(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.seconds += seconds;
        self.first_moment += seconds * self.value;
        self.second_moment += seconds * self.value * self.value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_weighted_by_time() {
        let at = Duration::from_secs;
        let mut integrator = Integrator::new(at(10));
        integrator.set(at(10), 1.0);
        integrator.set(at(13), 5.0);
        let observed = integrator.reset(at(14));
        assert_eq!((observed.seconds, observed.average, observed.max), (4.0, 2.0, 5.0));
        assert!((observed.deviation - 3f64.sqrt()).abs() < 1e-9);
        integrator.set(at(16), 0.0);
        let observed = integrator.reset(at(16));
        assert_eq!((observed.average, observed.deviation, observed.max), (5.0, 0.0, 5.0));
        let observed = integrator.reset(at(16));
        assert_eq!((observed.seconds, observed.average, observed.max), (0.0, 0.0, 0.0));
    }
}
