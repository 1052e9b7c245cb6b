//! Delays the retries of failed items.

use std::{collections::HashMap, time::Duration};

const FIRST_DELAY: Duration = Duration::from_millis(5);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// Delays each item by its consecutive failures: 5 milliseconds after the first one, twice as long after each further
/// one, and at most a minute.
#[derive(Debug, Default)]
pub(crate) struct ItemExponentialFailureRateLimiter {
    failures: HashMap<String, u32>,
}

impl ItemExponentialFailureRateLimiter {
    /// Counts a failure of the item, and returns the delay of its retry.
    pub(crate) fn delay(&mut self, item: &str) -> Duration {
        let failures = self.failures.entry(item.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        FIRST_DELAY.saturating_mul(1 << (*failures - 1).min(16)).min(LONGEST_DELAY)
    }

    /// Forgets the failures of the item.
    pub(crate) fn forget(&mut self, item: &str) {
        self.failures.remove(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_minute_and_begin_anew_after_a_success() {
        let mut limiter = ItemExponentialFailureRateLimiter::default();
        let mut delays =
            |count: usize| -> Vec<u128> { (0..count).map(|_| limiter.delay("a").as_millis()).collect() };
        assert_eq!(delays(4), [5, 10, 20, 40]);
        assert_eq!(delays(11)[8..], [20480, 40960, 60000]);
        assert_eq!(limiter.delay("b").as_millis(), 5);
        limiter.forget("a");
        assert_eq!(limiter.failures.len(), 1);
        assert_eq!(limiter.delay("a").as_millis(), 5);
    }
}
