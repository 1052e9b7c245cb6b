//! One queue of a priority level.

use crate::{seat_seconds::SeatSeconds, work::WorkEstimate};
use std::collections::BTreeSet;

/// The waiting requests in order of arrival, and sums over them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Ids grow with time, so the first is the oldest.
    pub(super) waiting: BTreeSet<u64>,
    /// The virtual time at which the next request is dispatched.
    pub(super) next_dispatch_r: SeatSeconds,
    /// The number of executing requests.
    pub(super) executing: usize,
    /// The seats of executing requests, and lingering seats.
    pub(super) seats_in_use: u64,
    pub(super) initial_seats_sum: u64,
    pub(super) max_seats_sum: u64,
    pub(super) total_work_sum: SeatSeconds,
}

impl Queue {
    pub(super) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    pub(super) fn push(&mut self, id: u64, estimate: &WorkEstimate, work: SeatSeconds) {
        self.waiting.insert(id);
        self.initial_seats_sum += estimate.initial_seats;
        self.max_seats_sum += estimate.max_seats();
        self.total_work_sum += work;
    }

    pub(super) fn remove(&mut self, id: u64, estimate: &WorkEstimate, work: SeatSeconds) {
        if self.waiting.remove(&id) {
            self.initial_seats_sum -= estimate.initial_seats;
            self.max_seats_sum -= estimate.max_seats();
            self.total_work_sum -= work;
        }
    }
}
