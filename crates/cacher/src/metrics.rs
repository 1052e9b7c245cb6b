//! Counters and histograms of one cacher, to be exported under Kubernetes' metric names.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

/// One cacher's metrics. The exporter adds the `group` and `resource` labels.
#[derive(Debug, Default)]
pub struct CacherMetrics {
    /// `apiserver_watch_cache_events_received_total`
    pub events_received: AtomicU64,
    /// `apiserver_watch_cache_events_dispatched_total`
    pub events_dispatched: AtomicU64,
    /// `apiserver_watch_cache_initializations_total`
    pub initializations: AtomicU64,
    /// `apiserver_watch_cache_resource_version`
    pub resource_version: AtomicU64,
    /// `apiserver_watch_cache_read_wait_seconds`
    pub read_wait: Histogram,
    /// `apiserver_watch_cache_consistent_read_total{success="true",fallback="false"}`
    pub consistent_reads: AtomicU64,
    /// `apiserver_watch_cache_consistent_read_total{success="true",fallback="true"}`: the cache was not fresh in time and
    /// the store answered.
    pub consistent_reads_fallback: AtomicU64,
    /// `apiserver_watch_cache_consistent_read_total{success="false",fallback="true"}`: the store did not answer either.
    pub consistent_reads_failed: AtomicU64,
    /// `apiserver_init_events_total`: events sent to bring new watchers up to date.
    pub init_events: AtomicU64,
    /// `apiserver_terminated_watchers_total`: watchers cut off because they were too slow.
    pub terminated_watchers: AtomicU64,
    /// `watch_cache_capacity`
    pub capacity: AtomicUsize,
    /// Stored values that could not be decoded.
    pub decode_errors: AtomicU64,
    /// Watchers open now.
    pub watchers: AtomicUsize,
    /// The number of times that a waiting watcher was woken.
    pub wake_ups: AtomicU64,
}

/// A histogram with the buckets of `apiserver_watch_cache_read_wait_seconds`.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; Self::BOUNDS.len() + 1],
    sum_nanoseconds: AtomicU64,
}

impl Histogram {
    /// The upper bounds of the buckets, in seconds; one more bucket holds longer durations.
    pub const BOUNDS: [f64; 13] = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0];

    /// Records one duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = Self::BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(Self::BOUNDS.len());
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The number of recorded durations in each bucket (not cumulative).
    pub fn counts(&self) -> [u64; Self::BOUNDS.len() + 1] {
        std::array::from_fn(|at| self.counts.get(at).map_or(0, |count| count.load(Ordering::Relaxed)))
    }

    /// The sum of all recorded durations, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        Duration::from_nanos(self.sum_nanoseconds.load(Ordering::Relaxed)).as_secs_f64()
    }
}

pub(crate) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_on_a_bound_belongs_to_the_bucket_below() {
        let histogram = Histogram::default();
        for milliseconds in [0, 5, 6, 3000, 3001] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let counts = histogram.counts();
        assert_eq!((counts[0], counts[1], counts[12], counts[13]), (2, 1, 1, 1));
        assert_eq!(counts.iter().sum::<u64>(), 5);
        assert!((histogram.sum_seconds() - 6.012).abs() < 1e-9);
    }
}
