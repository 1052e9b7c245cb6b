//! Counters and histograms of one cacher, to be exported under Kubernetes' metric names.

use prometheus::{Histogram, HistogramOpts};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The upper bounds of the buckets of `apiserver_watch_cache_read_wait_seconds`, in seconds.
const READ_WAIT_BUCKETS: [f64; 13] = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0];

/// One cacher's metrics. The exporter adds the `group` and `resource` labels.
#[derive(Debug)]
pub struct CacherMetrics {
    /// `apiserver_watch_cache_events_received_total`
    pub events_received: AtomicU64,
    /// `apiserver_watch_cache_events_dispatched_total`
    pub events_dispatched: AtomicU64,
    /// `apiserver_watch_cache_initializations_total`
    pub initializations: AtomicU64,
    /// `apiserver_watch_cache_resource_version`
    pub resource_version: AtomicU64,
    /// `apiserver_watch_cache_read_wait_seconds`: the time that reads of a certain freshness waited for the cache.
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
    /// `watch_cache_capacity_increase_total`
    pub capacity_increases: AtomicU64,
    /// `watch_cache_capacity_decrease_total`
    pub capacity_decreases: AtomicU64,
    /// `apiserver_cache_list_total`: lists that were answered from the cache.
    pub lists: AtomicU64,
    /// `apiserver_cache_list_fetched_objects_total`: objects that these lists read.
    pub list_fetched: AtomicU64,
    /// `apiserver_cache_list_returned_objects_total`: objects that they returned.
    pub list_returned: AtomicU64,
    /// `apiserver_storage_list_total`: lists that were read from the store.
    pub storage_lists: AtomicU64,
    /// `apiserver_storage_list_fetched_objects_total`: objects that these lists read.
    pub storage_list_fetched: AtomicU64,
    /// `apiserver_storage_list_returned_objects_total`: objects that could be decoded.
    pub storage_list_returned: AtomicU64,
    /// `etcd_bookmark_total`: reports of progress from the store.
    pub bookmarks: AtomicU64,
    /// `apiserver_resource_size_estimate_bytes`: the size of all objects, as JSON.
    pub size_estimate: AtomicU64,
    /// `apiserver_storage_decode_errors_total`: stored values that could not be decoded.
    pub decode_errors: AtomicU64,
    /// The watches of shards that began; without [`CacherMetrics::shard_watches_ended`], those that are open:
    /// `apiserver_watch_shards_total`
    pub shard_watches_begun: AtomicU64,
    /// The watches of shards that ended.
    pub shard_watches_ended: AtomicU64,
    /// `apiserver_watch_filtered_events_total`: objects of events that were in none of a watch's shards.
    pub shard_filtered_events: AtomicU64,
    /// Watchers open now.
    pub watchers: AtomicUsize,
    /// The number of times that a waiting watcher was woken.
    pub wake_ups: AtomicU64,
}

impl Default for CacherMetrics {
    fn default() -> CacherMetrics {
        CacherMetrics {
            events_received: AtomicU64::default(),
            events_dispatched: AtomicU64::default(),
            initializations: AtomicU64::default(),
            resource_version: AtomicU64::default(),
            read_wait: read_wait(),
            consistent_reads: AtomicU64::default(),
            consistent_reads_fallback: AtomicU64::default(),
            consistent_reads_failed: AtomicU64::default(),
            init_events: AtomicU64::default(),
            terminated_watchers: AtomicU64::default(),
            capacity: AtomicUsize::default(),
            capacity_increases: AtomicU64::default(),
            capacity_decreases: AtomicU64::default(),
            lists: AtomicU64::default(),
            list_fetched: AtomicU64::default(),
            list_returned: AtomicU64::default(),
            shard_watches_begun: AtomicU64::default(),
            shard_watches_ended: AtomicU64::default(),
            shard_filtered_events: AtomicU64::default(),
            storage_lists: AtomicU64::default(),
            storage_list_fetched: AtomicU64::default(),
            storage_list_returned: AtomicU64::default(),
            bookmarks: AtomicU64::default(),
            size_estimate: AtomicU64::default(),
            decode_errors: AtomicU64::default(),
            watchers: AtomicUsize::default(),
            wake_ups: AtomicU64::default(),
        }
    }
}

fn read_wait() -> Histogram {
    let options = HistogramOpts::new(
        "apiserver_watch_cache_read_wait_seconds",
        "How long reads waited until the watch cache was fresh, in seconds.",
    );
    Histogram::with_opts(options.buckets(READ_WAIT_BUCKETS.to_vec()))
        .expect("a valid name, and ascending bounds")
}

impl CacherMetrics {
    /// Sets the capacity, and counts the change.
    pub(crate) fn set_capacity(&self, capacity: usize) {
        let before = self.capacity.swap(capacity, Ordering::Relaxed);
        if before != 0 && capacity > before {
            add(&self.capacity_increases, 1);
        } else if capacity < before {
            add(&self.capacity_decreases, 1);
        }
    }

    /// Counts the objects of a list that is answered from the cache.
    pub fn add_listed(&self, fetched: usize, returned: usize) {
        add(&self.list_fetched, fetched);
        add(&self.list_returned, returned);
    }
}

pub(crate) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}
