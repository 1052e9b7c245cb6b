//! Computes the time after which refused requests may be retried.

use parking_lot::Mutex;
use std::{collections::VecDeque, time::Duration};

/// The longest `Retry-After`, in seconds.
const MAX_RETRY_AFTER: u64 = 32;

/// Counts refused requests per second, and adapts `Retry-After`: it doubles while many requests are refused, like the
/// congestion window of TCP, and is reduced step by step.
#[derive(Debug)]
pub(crate) struct DroppedRequests(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The number of refused requests by second, without the present one.
    history: VecDeque<(u64, u64)>,
    /// The present second, and the number of refused requests in it.
    current: (u64, u64),
    retry_after: u64,
    /// The second in which the time was last increased.
    lengthened: u64,
}

impl Default for DroppedRequests {
    fn default() -> DroppedRequests {
        DroppedRequests(Mutex::new(State {
            history: VecDeque::new(),
            current: (0, 0),
            retry_after: 1,
            lengthened: 0,
        }))
    }
}

impl DroppedRequests {
    /// Records a refused request, and returns the seconds after which it may be retried.
    pub(crate) fn record(&self, now: Duration) -> u64 {
        let second = now.as_secs();
        let mut state = self.0.lock();
        if state.current.0 == second && state.current.1 > 0 {
            state.current.1 += 1;
            return state.retry_after;
        }
        state.next_second(second);
        state.retry_after
    }
}

impl State {
    fn next_second(&mut self, second: u64) {
        let last = std::mem::replace(&mut self.current, (second, 1));
        if last.1 > 0 {
            self.history.push_back(last);
        }
        // Older seconds are never read, so the history stays bounded, however long the flood.
        let horizon = (2 * self.retry_after).min(MAX_RETRY_AFTER);
        while self.history.front().is_some_and(|(then, _)| second.saturating_sub(*then) > horizon) {
            self.history.pop_front();
        }
        let recent = self.history.iter().filter(|(then, _)| second.saturating_sub(*then) <= self.retry_after);
        let dropped: u64 = recent.map(|(_, count)| count).sum();
        let may_lengthen = self.lengthened == 0 || second.saturating_sub(self.lengthened) >= self.retry_after;
        if may_lengthen && dropped >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(MAX_RETRY_AFTER);
            self.lengthened = second;
        } else if dropped < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_the_flood_the_longer_the_wait() {
        let dropped = DroppedRequests::default();
        let mut told = Vec::new();
        for second in 100..200 {
            for _ in 0..1000 {
                dropped.record(Duration::from_secs(second));
            }
            told.push(dropped.record(Duration::from_secs(second)));
        }
        assert_eq!(told.first(), Some(&1));
        assert_eq!(told.get(1), Some(&2));
        assert!(told.is_sorted());
        assert_eq!(told.last(), Some(&MAX_RETRY_AFTER));
        assert!(dropped.0.lock().history.len() <= 34);
        // One refusal now and then.
        let mut last = MAX_RETRY_AFTER;
        for second in (300..700).step_by(10) {
            let now = dropped.record(Duration::from_secs(second));
            assert!(now <= last);
            last = now;
        }
        assert_eq!(last, 1);
    }
}
