//! Conditions that others can bring about again and again, and that are logged from time to time.

use std::time::{Duration, Instant};

/// How often a condition is logged.
const INTERVAL: Duration = Duration::from_secs(10);

/// Decides when a condition that recurs is logged, so that nobody fills the log with it.
#[derive(Debug, Default)]
pub(crate) struct Recurrence {
    logged_at: Option<Instant>,
    /// How often the condition has occurred since it was logged.
    count: u64,
}

impl Recurrence {
    /// Records that the condition occurs. `Some` when it has to be logged now: how often it has occurred since it was
    /// logged.
    pub(crate) fn due(&mut self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|at| now < at + INTERVAL) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_logged_from_time_to_time_with_its_number() {
        let (mut condition, begin) = (Recurrence::default(), Instant::now());
        assert_eq!(condition.due_at(begin), Some(1));
        assert_eq!(condition.due_at(begin), None);
        assert_eq!(condition.due_at(begin + INTERVAL / 2), None);
        assert_eq!(condition.due_at(begin + INTERVAL), Some(3));
        assert_eq!(condition.due_at(begin + INTERVAL), None);
    }
}
