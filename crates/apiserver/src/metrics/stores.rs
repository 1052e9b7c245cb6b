//! Exports the metrics of stores and watch caches.

use super::{
    cacher_counters::{CacherCounter, CacherCounters},
    metric_registry::MetricRegistry,
};
use crate::registry::Stores;
use pintle_cacher::CacherMetrics;
use pintle_machinery::GroupResource;
use prometheus::{
    Histogram, IntCounterVec, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::{LabelPair, MetricFamily},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The size of the stored data in each engine, in bytes, as last measured.
#[derive(Debug, Default)]
pub struct StorageSizes(parking_lot::Mutex<BTreeMap<usize, u64>>);

impl StorageSizes {
    /// Sets the size of an engine's data; engine 0 is the default one.
    pub fn set(&self, engine: usize, bytes: u64) {
        self.0.lock().insert(engine, bytes);
    }
}

/// The exported metrics; they are updated at each scrape.
pub(super) struct StoreMetrics {
    /// Locked for a whole update: of two scrapes at a time, one updates after the other.
    counters: parking_lot::Mutex<CacherCounters>,
    read_wait: ReadWait,
    resource_version: IntGaugeVec,
    capacity: IntGaugeVec,
    objects: IntGaugeVec,
    /// The same under a former name.
    storage_objects: IntGaugeVec,
    size_estimate: IntGaugeVec,
    size: IntGaugeVec,
    /// The open watches of the resources whose shards were watched.
    shard_watches: IntGaugeVec,
}

const BY_RESOURCE: &[&str] = &["group", "resource"];
/// The watch cache is read by key alone.
const NO_INDEX: &[&str] = &[""];

impl StoreMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<StoreMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let by_resource = |name: &str, help: &str, read: fn(&CacherMetrics) -> &AtomicU64| {
            Ok::<_, prometheus::Error>(CacherCounter {
                exported: counter(name, help, BY_RESOURCE)?,
                read,
                more: &[],
                is_sparse: false,
            })
        };
        let consistent = counter(
            "apiserver_watch_cache_consistent_read_total",
            "Consistent reads from the watch cache.",
            &["group", "resource", "fallback", "success"],
        )?;
        let consistent_reads = |read: fn(&CacherMetrics) -> &AtomicU64, more| CacherCounter {
            exported: consistent.clone(),
            read,
            more,
            is_sparse: false,
        };
        Ok(StoreMetrics {
            counters: parking_lot::Mutex::new(CacherCounters::new(vec![
                by_resource(
                    "apiserver_watch_cache_events_received_total",
                    "Events that the watch cache got from storage.",
                    |metrics| &metrics.events_received,
                )?,
                by_resource(
                    "apiserver_watch_cache_events_dispatched_total",
                    "Events that the watch cache gave to watchers.",
                    |metrics| &metrics.events_dispatched,
                )?,
                by_resource(
                    "apiserver_watch_cache_initializations_total",
                    "How often the watch cache was filled anew.",
                    |metrics| &metrics.initializations,
                )?,
                by_resource(
                    "apiserver_init_events_total",
                    "Events sent to bring new watchers up to date.",
                    |metrics| &metrics.init_events,
                )?,
                by_resource(
                    "apiserver_terminated_watchers_total",
                    "Watchers cut off because they were too slow.",
                    |metrics| &metrics.terminated_watchers,
                )?,
                by_resource(
                    "apiserver_storage_events_received_total",
                    "Events that were received from the store.",
                    |metrics| &metrics.events_received,
                )?,
                by_resource(
                    "watch_cache_capacity_increase_total",
                    "How often the capacity of the watch cache grew.",
                    |metrics| &metrics.capacity_increases,
                )?,
                by_resource(
                    "watch_cache_capacity_decrease_total",
                    "How often the capacity of the watch cache shrank.",
                    |metrics| &metrics.capacity_decreases,
                )?,
                by_resource(
                    "apiserver_storage_decode_errors_total",
                    "Stored values that could not be read.",
                    |metrics| &metrics.decode_errors,
                )?,
                by_resource("etcd_bookmark_total", "Reports of progress from the store.", |metrics| {
                    &metrics.bookmarks
                })?,
                CacherCounter {
                    exported: counter(
                        "apiserver_cache_list_total",
                        "Lists that were answered from the watch cache.",
                        &["group", "resource", "index"],
                    )?,
                    read: |metrics| &metrics.lists,
                    more: NO_INDEX,
                    is_sparse: false,
                },
                CacherCounter {
                    exported: counter(
                        "apiserver_cache_list_fetched_objects_total",
                        "Objects that lists read from the watch cache.",
                        &["group", "resource", "index"],
                    )?,
                    read: |metrics| &metrics.list_fetched,
                    more: NO_INDEX,
                    is_sparse: false,
                },
                by_resource(
                    "apiserver_cache_list_returned_objects_total",
                    "Objects that lists returned from the watch cache.",
                    |metrics| &metrics.list_returned,
                )?,
                by_resource(
                    "apiserver_storage_list_total",
                    "Lists that were read from the store.",
                    |metrics| &metrics.storage_lists,
                )?,
                by_resource(
                    "apiserver_storage_list_fetched_objects_total",
                    "Objects that lists read from the store.",
                    |metrics| &metrics.storage_list_fetched,
                )?,
                // The store has no selectors: the watch cache selects.
                by_resource(
                    "apiserver_storage_list_evaluated_objects_total",
                    "Objects of the store that lists tested.",
                    |metrics| &metrics.storage_list_returned,
                )?,
                by_resource(
                    "apiserver_storage_list_returned_objects_total",
                    "Objects that lists returned from the store.",
                    |metrics| &metrics.storage_list_returned,
                )?,
                consistent_reads(|metrics| &metrics.consistent_reads, &["false", "true"]),
                consistent_reads(|metrics| &metrics.consistent_reads_fallback, &["true", "true"]),
                consistent_reads(|metrics| &metrics.consistent_reads_failed, &["true", "false"]),
                CacherCounter {
                    is_sparse: true,
                    ..by_resource(
                        "apiserver_watch_filtered_events_total",
                        "Objects of events that were in none of the shards of a watch.",
                        |metrics| &metrics.shard_filtered_events,
                    )?
                },
            ])),
            read_wait: ReadWait::register(registry)?,
            resource_version: gauge(
                "apiserver_watch_cache_resource_version",
                "The resource version that the watch cache has reached.",
                BY_RESOURCE,
            )?,
            capacity: gauge("watch_cache_capacity", "Events that the watch cache may keep.", BY_RESOURCE)?,
            objects: gauge("apiserver_resource_objects", "Stored objects.", BY_RESOURCE)?,
            storage_objects: gauge("apiserver_storage_objects", "Stored objects.", &["resource"])?,
            size_estimate: gauge(
                "apiserver_resource_size_estimate_bytes",
                "The estimated size of stored objects: of their JSON.",
                BY_RESOURCE,
            )?,
            size: gauge(
                "apiserver_storage_size_bytes",
                "Bytes that the stored data takes.",
                &["storage_cluster_id"],
            )?,
            shard_watches: gauge("apiserver_watch_shards_total", "Open watches of shards.", BY_RESOURCE)?,
        })
    }

    /// Updates the metrics. The series of resources that are no longer served are removed.
    pub(super) fn collect(&self, stores: &[Arc<Stores>], sizes: &StorageSizes, count_objects: bool) {
        let mut counters = self.counters.lock();
        for (at, bytes) in sizes.0.lock().iter() {
            self.size.with_label_values(&[format!("etcd-{at}").as_str()]).set(signed(*bytes));
        }
        let stores: Vec<_> = stores.iter().flat_map(|stores| stores.all()).collect();
        let mut read_wait = Vec::new();
        for store in &stores {
            let resource = store.group_resource();
            let labels = [resource.group.as_str(), resource.resource.as_str()];
            let cacher = store.cacher();
            let metrics = cacher.metrics();
            counters.export(resource, metrics);
            let begun = metrics.shard_watches_begun.load(Ordering::Relaxed);
            if begun > 0 {
                let ended = metrics.shard_watches_ended.load(Ordering::Relaxed);
                self.shard_watches.with_label_values(&labels).set(signed(begun.saturating_sub(ended)));
            }
            read_wait.extend(with_labels(&metrics.read_wait, labels));
            self.resource_version
                .with_label_values(&labels)
                .set(signed(metrics.resource_version.load(Ordering::Relaxed)));
            self.capacity
                .with_label_values(&labels)
                .set(signed(metrics.capacity.load(Ordering::Relaxed) as u64));
            if count_objects {
                let objects = cacher.current().map_or(0, |snapshot| snapshot.len());
                self.objects.with_label_values(&labels).set(signed(objects as u64));
                self.storage_objects
                    .with_label_values(&[resource.to_string().as_str()])
                    .set(signed(objects as u64));
                self.size_estimate
                    .with_label_values(&labels)
                    .set(signed(metrics.size_estimate.load(Ordering::Relaxed)));
            }
        }
        self.read_wait.set(read_wait);
        let served: HashSet<&GroupResource> = stores.iter().map(|store| store.group_resource()).collect();
        for gone in counters.retain(|resource| served.contains(resource)) {
            self.remove(&gone);
        }
    }

    fn remove(&self, resource: &GroupResource) {
        let labels = [resource.group.as_str(), resource.resource.as_str()];
        let by_resource =
            [&self.resource_version, &self.capacity, &self.objects, &self.size_estimate, &self.shard_watches];
        for gauge in by_resource {
            // Not every resource has all series.
            let _ = gauge.remove_label_values(&labels);
        }
        let _ = self.storage_objects.remove_label_values(&[resource.to_string().as_str()]);
    }
}

/// The histograms of the watch caches, as of the last scrape.
#[derive(Clone)]
struct ReadWait(Arc<ReadWaitState>);

struct ReadWaitState {
    description: Desc,
    families: parking_lot::Mutex<Vec<MetricFamily>>,
}

impl ReadWait {
    fn register(registry: &MetricRegistry) -> Result<ReadWait, prometheus::Error> {
        let description = Desc::new(
            "apiserver_watch_cache_read_wait_seconds".to_owned(),
            "How long reads waited until the watch cache was fresh, in seconds.".to_owned(),
            BY_RESOURCE.iter().map(|&label| label.to_owned()).collect(),
            HashMap::new(),
        )?;
        let read_wait = ReadWait(Arc::new(ReadWaitState { description, families: Default::default() }));
        registry.register(Box::new(read_wait.clone()))?;
        Ok(read_wait)
    }

    fn set(&self, families: Vec<MetricFamily>) {
        *self.0.families.lock() = families;
    }
}

impl Collector for ReadWait {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.0.families.lock().clone()
    }
}

/// The metrics of a resource's histogram; none if it has no observation, as in the reference, whose metrics exist from
/// their first observation on.
fn with_labels(histogram: &Histogram, values: [&str; 2]) -> Vec<MetricFamily> {
    if histogram.get_sample_count() == 0 {
        return Vec::new();
    }
    let mut families = histogram.collect();
    for metric in families.iter_mut().flat_map(MetricFamily::mut_metric) {
        let label = |(name, value): (&&str, &str)| {
            let mut label = LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value(value.to_owned());
            label
        };
        metric.set_label(BY_RESOURCE.iter().zip(values).map(label).collect());
    }
    families
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    #[test]
    fn waits_are_exported_for_the_resources_that_have_some() {
        let registry = MetricRegistry::bare().unwrap();
        let read_wait = ReadWait::register(&registry).unwrap();
        let scrape = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert_eq!(scrape(), "");
        let (pods, deployments) = (CacherMetrics::default(), CacherMetrics::default());
        for seconds in [0.0, 0.005, 0.006, 4.0] {
            deployments.read_wait.observe(seconds);
        }
        let resources = [(&pods, ["", "pods"]), (&deployments, ["apps", "deployments"])];
        let families = resources.map(|(metrics, labels)| with_labels(&metrics.read_wait, labels));
        read_wait.set(families.into_iter().flatten().collect());
        let text = scrape();
        assert!(!text.contains("pods"), "{text}");
        for (sample, value) in [
            ("bucket{group=\"apps\",resource=\"deployments\",le=\"0.005\"}", "2"),
            ("bucket{group=\"apps\",resource=\"deployments\",le=\"0.025\"}", "3"),
            ("bucket{group=\"apps\",resource=\"deployments\",le=\"3\"}", "3"),
            ("bucket{group=\"apps\",resource=\"deployments\",le=\"+Inf\"}", "4"),
            ("count{group=\"apps\",resource=\"deployments\"}", "4"),
        ] {
            let line = format!("apiserver_watch_cache_read_wait_seconds_{sample} {value}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
