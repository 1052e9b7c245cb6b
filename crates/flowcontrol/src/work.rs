//! Estimates the work of a request before it is executed
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#seats-occupied-by-a-request>).

use crate::{RequestAttributes, SeatSeconds, WatchTracker};
use pintle_feature_gates::{Gate, enabled};
use std::{sync::Arc, time::Duration};

/// The work of a request: seats while it executes, and seats for some time after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkEstimate {
    /// The seats while it executes.
    pub initial_seats: u64,
    /// The seats for some time after it was answered.
    pub final_seats: u64,
    /// The length of that time. The client does not wait for it.
    pub additional_latency: Duration,
}

impl WorkEstimate {
    /// An estimate of `seats` seats while the request executes, and none after it.
    pub const fn seats(seats: u64) -> WorkEstimate {
        WorkEstimate { initial_seats: seats, final_seats: 0, additional_latency: Duration::ZERO }
    }

    /// The largest number of seats at any time.
    pub fn max_seats(&self) -> u64 {
        self.initial_seats.max(self.final_seats)
    }
}

/// Statistics of the stored objects of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceStats {
    /// The number of objects.
    pub count: u64,
    /// The average size of an object in bytes, approximately.
    pub average_bytes: u64,
}

/// The source of statistics of stored objects.
pub trait ResourceStatsSource: Send + Sync {
    /// The statistics of a resource; `None` when this server does not store it.
    fn stats(&self, group: &str, resource: &str) -> Option<ResourceStats>;
}

/// Estimates the work of requests.
pub struct WorkEstimator {
    stats: Arc<dyn ResourceStatsSource>,
    watches: Arc<WatchTracker>,
}

const MIN_SEATS: u64 = 1;
const MAX_LIST_SEATS: u64 = 100;
const MAX_MUTATING_SEATS: u64 = 10;
/// The bytes of objects that one seat represents.
const BYTES_PER_SEAT: u64 = 100_000;
/// The most bytes that a list from the cache has in memory at once: it is streamed.
const STREAMED_BYTES: u64 = 1_000_000;
/// The assumed size in bytes of objects of unknown size.
const LARGEST_OBJECT_BYTES: u64 = 1_500_000;
/// The number of watches that one seat represents.
const WATCHES_PER_SEAT: f64 = 10.0;
/// The time to send an event to them.
const EVENT_DURATION: Duration = Duration::from_millis(5);

impl WorkEstimator {
    pub(crate) fn new(stats: Arc<dyn ResourceStatsSource>, watches: Arc<WatchTracker>) -> WorkEstimator {
        WorkEstimator { stats, watches }
    }

    /// Estimates a request of a level whose requests have at most `max_seats` seats (0 when the level has no limit of
    /// its own). The second value is the number of matching watches, for requests for which they are counted.
    pub fn estimate(&self, request: &dyn RequestAttributes, max_seats: u64) -> (WorkEstimate, Option<usize>) {
        match request.verb() {
            // The initial events of a watch are a list.
            "watch" if !enabled(Gate::WatchList) => (WorkEstimate::seats(MIN_SEATS), None),
            "list" | "watch" => (self.list(request, at_most(max_seats, MAX_LIST_SEATS)), None),
            "create" | "update" | "patch" | "delete" => {
                if request.resource() == "serviceaccounts" && request.subresource() == "token" {
                    // A token request causes no event for the watches of its account.
                    return (WorkEstimate::seats(MIN_SEATS), None);
                }
                let watches = self.watches.interested(request);
                (write(watches, at_most(max_seats, MAX_MUTATING_SEATS)), Some(watches))
            }
            _ => (WorkEstimate::seats(MIN_SEATS), None),
        }
    }

    fn list(&self, request: &dyn RequestAttributes, max_seats: u64) -> WorkEstimate {
        let given = |parameter: &str| request.query(parameter).unwrap_or_default();
        let Ok(limit) = (match given("limit") {
            "" => Ok(0),
            limit => limit.parse::<i64>(),
        }) else {
            // The request will be refused.
            return WorkEstimate::seats(max_seats);
        };
        let is_watch = request.verb() == "watch";
        if is_watch && !sends_state(request.query("sendInitialEvents"), given("resourceVersion")) {
            return WorkEstimate::seats(MIN_SEATS);
        }
        let Some(stats) = self.stats.stats(request.api_group(), request.resource()) else {
            // The resource is not stored by this server.
            return WorkEstimate::seats(MIN_SEATS);
        };
        let average = match (stats.average_bytes, stats.count) {
            (0, 1..) => LARGEST_OBJECT_BYTES,
            (bytes, _) => bytes,
        };
        let limited = u64::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(u64::MAX);
        let limited = limited.min(stats.count);
        let from_cache = is_watch
            || !reads_storage(
                given("resourceVersionMatch"),
                given("resourceVersion"),
                given("continue"),
                limit > 0,
            );
        let selects = !given("fieldSelector").is_empty() || !given("labelSelector").is_empty();
        let loaded = match () {
            () if !request.name().is_empty() => 1,
            () if !from_cache && selects => limited.max(stats.count / 2),
            () => limited,
        };
        let mut bytes = loaded.saturating_mul(average);
        if from_cache {
            bytes = bytes.min(STREAMED_BYTES);
        }
        WorkEstimate::seats(bytes.div_ceil(BYTES_PER_SEAT).max(MIN_SEATS).min(max_seats))
    }
}

/// The limit of a level, capped at `limit`.
fn at_most(level: u64, limit: u64) -> u64 {
    if level == 0 || level > limit { limit } else { level }
}

/// Whether a watch begins with the state, as a list does.
fn sends_state(send_initial_events: Option<&str>, resource_version: &str) -> bool {
    send_initial_events.is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
        || matches!(resource_version, "" | "0")
}

/// Whether a list is answered from the store instead of the cache.
fn reads_storage(version_match: &str, version: &str, continue_token: &str, is_limited: bool) -> bool {
    match version_match {
        "NotOlderThan" => false,
        "" => !continue_token.is_empty() || is_limited && !matches!(version, "" | "0"),
        _ => true,
    }
}

/// The estimate of a write, with the cost of its event. Wide and short work is made narrow and long: otherwise it
/// would delay other requests until enough seats are free at once.
fn write(watches: usize, max_seats: u64) -> WorkEstimate {
    let mut estimate = WorkEstimate::seats(1);
    if watches as f64 >= WATCHES_PER_SEAT {
        let seats = (watches as f64 / WATCHES_PER_SEAT).ceil();
        estimate.final_seats = (seats as u64).min(max_seats);
        let work = SeatSeconds::of(seats, EVENT_DURATION);
        estimate.additional_latency = work.duration_per_seat(estimate.final_seats);
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestRequest;

    struct Objects(u64, u64);

    impl ResourceStatsSource for Objects {
        fn stats(&self, _: &str, resource: &str) -> Option<ResourceStats> {
            (resource != "unknown").then_some(ResourceStats { count: self.0, average_bytes: self.1 })
        }
    }

    #[test]
    fn lists_have_seats_by_what_they_load() {
        let check = |objects: (u64, u64), max: u64, request: TestRequest, expected: u64| {
            let estimator = WorkEstimator::new(Arc::new(Objects(objects.0, objects.1)), Arc::default());
            let (estimate, watches) = estimator.estimate(&request, max);
            assert_eq!((estimate, watches), (WorkEstimate::seats(expected), None), "{request:?}");
        };
        let list = || TestRequest::resource("list", "", "pods");
        let asking = |query: &[(&str, &str)]| list().asking(query);
        check((0, 0), 100, list(), 1);
        check((100, 1_000), 100, list(), 1);
        check((101, 1_000), 100, list(), 2);
        // A list streamed from the cache has at most ten seats.
        check((100_000, 1_000), 100, list(), 10);
        check((100_000, 1_000), 4, list(), 4);
        check((100_000, 1_000), 0, list(), 10);
        check((100_000, 1_000), 100, asking(&[("limit", "500")]), 5);
        check((100_000, 1_000), 100, asking(&[("limit", "500"), ("resourceVersion", "0")]), 5);
        check((100_000, 1_000), 100, asking(&[("limit", "5000"), ("resourceVersion", "7")]), 50);
        check(
            (100_000, 1_000),
            100,
            asking(&[("limit", "500"), ("continue", "x"), ("labelSelector", "a=b")]),
            100,
        );
        check(
            (10_000, 1_000),
            100,
            asking(&[("resourceVersion", "7"), ("resourceVersionMatch", "Exact")]),
            100,
        );
        check(
            (10_000, 1_000),
            100,
            asking(&[("resourceVersion", "7"), ("resourceVersionMatch", "NotOlderThan")]),
            10,
        );
        check((100_000, 1_000), 100, list().named("one"), 1);
        check((1, 0), 100, list(), 10);
        check((100_000, 1_000), 30, asking(&[("limit", "many")]), 30);
        check((100_000, 1_000), 100, TestRequest::resource("list", "", "unknown"), 1);
        check((100_000, 1_000), 100, TestRequest::resource("get", "", "pods"), 1);
    }

    #[test]
    fn watches_have_seats_for_the_state_they_begin_with() {
        let estimator = WorkEstimator::new(Arc::new(Objects(500, 1_000)), Arc::default());
        let check = |query: &[(&str, &str)], expected: u64| {
            let request = TestRequest::resource("watch", "", "pods").asking(query);
            assert_eq!(estimator.estimate(&request, 100).0.initial_seats, expected, "{query:?}");
        };
        check(&[], 5);
        check(&[("resourceVersion", "0")], 5);
        check(&[("resourceVersion", "7")], 1);
        check(&[("resourceVersion", "7"), ("sendInitialEvents", "true")], 5);
    }

    #[test]
    fn writes_linger_for_their_watches() {
        let tracker = Arc::new(WatchTracker::default());
        let estimator = WorkEstimator::new(Arc::new(Objects(0, 0)), tracker.clone());
        let mut watches = Vec::new();
        let mut check = |count: usize, max: u64, final_seats: u64, milliseconds: u64| {
            while watches.len() < count {
                watches.push(tracker.register(&TestRequest::resource("watch", "", "pods")));
            }
            let request = TestRequest::resource("update", "", "pods").within("a").named("b");
            let additional_latency = Duration::from_millis(milliseconds);
            let expected = WorkEstimate { initial_seats: 1, final_seats, additional_latency };
            assert_eq!(estimator.estimate(&request, max), (expected, Some(count)));
        };
        check(0, 10, 0, 0);
        check(9, 10, 0, 0);
        check(10, 10, 1, 5);
        check(15, 10, 2, 5);
        check(200, 10, 10, 10);
        check(200, 0, 10, 10);
        check(200, 5, 5, 20);
        let token = TestRequest::resource("create", "", "serviceaccounts").on("token");
        assert_eq!(estimator.estimate(&token, 10), (WorkEstimate::seats(1), None));
    }
}
