//! Records watches: their events, and the time until the initial events are sent.

use super::metric_registry::MetricRegistry;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts};
use std::time::Duration;

/// The upper bounds of the sizes of events, in bytes.
const SIZES: &[f64] = &[1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];
/// The upper bounds of the time until the initial events are sent, in seconds.
const DURATIONS: &[f64] =
    &[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];

/// The metrics of watches.
pub(crate) struct WatchMetrics {
    events: IntCounterVec,
    sizes: HistogramVec,
    initial: HistogramVec,
}

/// The series of one resource, in one version.
pub(crate) struct WatchSeries {
    events: IntCounter,
    sizes: Histogram,
}

impl WatchMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<WatchMetrics, prometheus::Error> {
        let resource = ["group", "version", "resource"];
        let events = Opts::new("apiserver_watch_events_total", "Events that were sent to watches.");
        let events = IntCounterVec::new(events, &resource)?;
        let sizes =
            HistogramOpts::new("apiserver_watch_events_sizes", "The size of events of watches, in bytes.");
        let sizes = HistogramVec::new(sizes.buckets(SIZES.to_vec()), &resource)?;
        let initial = HistogramOpts::new(
            "apiserver_watch_list_duration_seconds",
            "How long it took until a watch was sent its initial events.",
        );
        let initial = HistogramVec::new(
            initial.buckets(DURATIONS.to_vec()),
            &["group", "version", "resource", "scope"],
        )?;
        registry.register(Box::new(events.clone()))?;
        registry.register(Box::new(sizes.clone()))?;
        registry.register(Box::new(initial.clone()))?;
        Ok(WatchMetrics { events, sizes, initial })
    }

    /// The series of a resource, for a watch to keep.
    pub(crate) fn of(&self, group: &str, version: &str, resource: &str) -> WatchSeries {
        let labels = [group, version, resource];
        WatchSeries {
            events: self.events.with_label_values(&labels),
            sizes: self.sizes.with_label_values(&labels),
        }
    }

    /// The duration until the initial events of a watch are sent.
    pub(crate) fn initial(&self, group: &str, version: &str, resource: &str, scope: &str) -> Histogram {
        self.initial.with_label_values(&[group, version, resource, scope])
    }
}

impl WatchSeries {
    /// Records an event that is sent, with its size in bytes.
    pub(crate) fn sent(&self, bytes: usize) {
        self.events.inc();
        self.sizes.observe(bytes as f64);
    }
}

/// Records the time since a request came, when its initial events are sent.
pub(crate) struct InitialEvents {
    pub(crate) received: tokio::time::Instant,
    pub(crate) duration: Histogram,
}

impl InitialEvents {
    /// The initial events are sent.
    pub(crate) fn sent(self) {
        let took: Duration = self.received.elapsed();
        self.duration.observe(took.as_secs_f64());
    }
}
