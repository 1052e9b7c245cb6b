//! The metrics of work queues, by the queue's name, as client-go's queues have them.

use crate::{queue_observer::Observer, work_queue::WorkQueue};
use parking_lot::Mutex;
use prometheus::{
    CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, Opts, core::Collector,
    proto::MetricFamily,
};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// The metrics of all work queues of a server. Clones share them.
#[derive(Clone)]
pub struct WorkQueueMetrics {
    adds: CounterVec,
    retries: CounterVec,
    depth: GaugeVec,
    waited: HistogramVec,
    worked: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    queues: Arc<Mutex<Vec<Weak<QueueMetrics>>>>,
}

/// The metrics of one queue.
struct QueueMetrics {
    adds: prometheus::Counter,
    retries: prometheus::Counter,
    depth: Gauge,
    waited: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    /// When the waiting names were added.
    added: HashMap<String, Instant>,
    /// When the work on the others began.
    begun: HashMap<String, Instant>,
}

/// Powers of ten, from ten nanoseconds.
// Two bounds are what Go's repeated multiplication makes of 1e-5 and 1e-4: they are labels.
const BUCKETS: [f64; 10] =
    [1e-8, 1e-7, 1e-6, 9.999999999999999e-6, 9.999999999999999e-5, 1e-3, 1e-2, 0.1, 1.0, 10.0];

impl WorkQueueMetrics {
    /// Makes the metrics, not yet registered.
    ///
    /// # Errors
    /// When a name is invalid, which would be a defect.
    pub fn new() -> Result<WorkQueueMetrics, prometheus::Error> {
        let names = ["name"];
        let counter = |name, help| CounterVec::new(Opts::new(name, help), &names);
        let gauge = |name, help| GaugeVec::new(Opts::new(name, help), &names);
        let histogram =
            |name, help| HistogramVec::new(HistogramOpts::new(name, help).buckets(BUCKETS.to_vec()), &names);
        Ok(WorkQueueMetrics {
            adds: counter("workqueue_adds_total", "Names that were added to a work queue.")?,
            retries: counter(
                "workqueue_retries_total",
                "Names that a work queue got again after a failure.",
            )?,
            depth: gauge("workqueue_depth", "Names that wait in a work queue.")?,
            waited: histogram("workqueue_queue_duration_seconds", "How long names waited in a work queue.")?,
            worked: histogram("workqueue_work_duration_seconds", "How long the work on a name took.")?,
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "How long the names in work have been in work, added up.",
            )?,
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "How long the name that is longest in work has been in work.",
            )?,
            queues: Arc::default(),
        })
    }

    /// Measures a queue from now on, under a name.
    pub fn measure(&self, name: &str, queue: &WorkQueue) {
        let of = |vector: &GaugeVec| vector.with_label_values(&[name]);
        let metrics = Arc::new(QueueMetrics {
            adds: self.adds.with_label_values(&[name]),
            retries: self.retries.with_label_values(&[name]),
            depth: of(&self.depth),
            waited: self.waited.with_label_values(&[name]),
            worked: self.worked.with_label_values(&[name]),
            unfinished: of(&self.unfinished),
            longest: of(&self.longest),
            times: Mutex::default(),
        });
        self.queues.lock().push(Arc::downgrade(&metrics));
        queue.observe(metrics);
    }

    fn vectors(&self) -> [&dyn Collector; 7] {
        [&self.adds, &self.retries, &self.depth, &self.waited, &self.worked, &self.unfinished, &self.longest]
    }
}

impl Collector for WorkQueueMetrics {
    fn desc(&self) -> Vec<&prometheus::core::Desc> {
        self.vectors().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.queues.lock().retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            let times: Vec<Duration> = queue.times.lock().begun.values().map(Instant::elapsed).collect();
            queue.unfinished.set(times.iter().sum::<Duration>().as_secs_f64());
            queue.longest.set(times.into_iter().max().unwrap_or_default().as_secs_f64());
            true
        });
        self.vectors().into_iter().flat_map(Collector::collect).collect()
    }
}

impl Observer for QueueMetrics {
    fn added(&self, name: &str, depth: usize) {
        self.adds.inc();
        self.times.lock().added.insert(name.to_owned(), Instant::now());
        self.set_depth(depth);
    }

    fn begun(&self, name: &str, depth: usize) {
        let mut times = self.times.lock();
        if let Some(added) = times.added.remove(name) {
            self.waited.observe(added.elapsed().as_secs_f64());
        }
        times.begun.insert(name.to_owned(), Instant::now());
        self.set_depth(depth);
    }

    fn done(&self, name: &str, is_retried: bool) {
        if let Some(begun) = self.times.lock().begun.remove(name) {
            self.worked.observe(begun.elapsed().as_secs_f64());
        }
        if is_retried {
            self.retries.inc();
        }
    }
}

impl QueueMetrics {
    fn set_depth(&self, depth: usize) {
        self.depth.set(f64::from(u32::try_from(depth).unwrap_or(u32::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_measured() {
        let (metrics, queue) = (WorkQueueMetrics::new().unwrap(), WorkQueue::default());
        metrics.measure("test", &queue);
        for name in ["a", "b", "a"] {
            queue.add(name.to_owned());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(queue.next().await, "a");
        tokio::time::advance(Duration::from_secs(2)).await;
        metrics.collect();
        assert_eq!(metrics.adds.with_label_values(&["test"]).get(), 2.0);
        assert_eq!(metrics.depth.with_label_values(&["test"]).get(), 1.0);
        assert_eq!(metrics.unfinished.with_label_values(&["test"]).get(), 2.0);
        assert_eq!(metrics.longest.with_label_values(&["test"]).get(), 2.0);
        queue.failed("a");
        metrics.collect();
        assert_eq!(metrics.longest.with_label_values(&["test"]).get(), 0.0);
        assert_eq!(metrics.retries.with_label_values(&["test"]).get(), 1.0);
        let waited = metrics.waited.with_label_values(&["test"]);
        assert_eq!((waited.get_sample_count(), waited.get_sample_sum()), (1, 1.0));
        assert_eq!(metrics.worked.with_label_values(&["test"]).get_sample_sum(), 2.0);
    }
}
