//! Opens storage engines, and records the metrics of etcd requests.

use crate::{Options, StorageBackend, egress::Egress, run_error::RunError};
use parking_lot::RwLock;
use pintle_apiserver::registry::{Engine, StorageObserver};
use pintle_machinery::GroupResource;
use pintle_storage::{
    EmbeddedOptions, EmbeddedStorage, EtcdObserver, EtcdOptions, EtcdStorage, MemoryStorage, Storage,
    snapshot::unfinished_restore,
};
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounterVec, Opts, core::Collector};
use std::{collections::BTreeMap, ops::Bound, sync::Arc, time::Duration};

/// Opens the engine that the options select.
pub(crate) async fn open(
    options: &Options,
    egress: &Egress,
    metrics: &Arc<EngineMetrics>,
) -> Result<Engine, RunError> {
    if let Some(etcd) = options.etcd() {
        return open_etcd(etcd, egress, metrics).await;
    }
    let storage: Arc<dyn Storage> = match options.storage_backend {
        StorageBackend::Memory => Arc::new(MemoryStorage::new()),
        _ => Arc::new(EmbeddedStorage::open(options.data_dir.join("store"), EmbeddedOptions::default())?),
    };
    Ok(Engine { storage, exclusive: true })
}

/// Connects to an etcd cluster, which is not exclusive: other servers may write to it.
pub(crate) async fn open_etcd(
    mut options: EtcdOptions,
    egress: &Egress,
    metrics: &Arc<EngineMetrics>,
) -> Result<Engine, RunError> {
    options.observer = Some(metrics.clone());
    options.dialer = egress.etcd();
    let prefix = options.prefix.clone();
    let storage = EtcdStorage::open(options).await?;
    refuse_unfinished_restore(&storage, prefix).await?;
    Ok(Engine { storage: Arc::new(storage), exclusive: false })
}

/// Refuses to start on a partly restored snapshot: the server would create the objects that are still missing, and the
/// restore could not finish.
async fn refuse_unfinished_restore(storage: &EtcdStorage, prefix: String) -> Result<(), RunError> {
    match unfinished_restore(storage, &prefix).await {
        Ok(None) => Ok(()),
        Ok(Some(sha256)) => Err(RunError::UnfinishedRestore { prefix, sha256 }),
        // The key that records a restore is outside the prefix, where this etcd user may have no read permission.
        Err(error) => {
            tracing::debug!(%error, "cannot tell whether a snapshot is being restored");
            Ok(())
        }
    }
}

/// Metrics of etcd requests, by resource.
pub(crate) struct EngineMetrics {
    requests: IntCounterVec,
    errors: IntCounterVec,
    duration: HistogramVec,
    lease_objects: Histogram,
    /// The resources by their key prefixes.
    resources: RwLock<BTreeMap<String, GroupResource>>,
}

impl EngineMetrics {
    pub(crate) fn new() -> Result<EngineMetrics, prometheus::Error> {
        let labels = ["operation", "group", "resource"];
        let counter = |name: &str, help: &str| IntCounterVec::new(Opts::new(name, help), &labels);
        let duration = HistogramOpts::new("etcd_request_duration_seconds", "How long requests to etcd took.");
        let lease_objects =
            HistogramOpts::new("etcd_lease_object_counts", "Keys that an etcd lease was given.");
        Ok(EngineMetrics {
            requests: counter("etcd_requests_total", "Requests to etcd.")?,
            errors: counter("etcd_request_errors_total", "Requests to etcd that failed.")?,
            duration: HistogramVec::new(
                duration.buckets(vec![
                    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0,
                    8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
                ]),
                &labels,
            )?,
            lease_objects: Histogram::with_opts(
                lease_objects.buckets(vec![10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0]),
            )?,
            resources: RwLock::default(),
        })
    }

    /// The metrics.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.requests.clone()),
            Box::new(self.errors.clone()),
            Box::new(self.duration.clone()),
            Box::new(self.lease_objects.clone()),
        ]
    }

    /// Calls `record` with the group and the resource of a key, that of the longest matching prefix.
    fn with_resource(&self, key: &str, record: impl FnOnce(&str, &str)) {
        let resources = self.resources.read();
        let up_to_key = resources.range::<str, _>((Bound::Unbounded, Bound::Included(key)));
        match up_to_key.rev().find(|(prefix, _)| key.starts_with(prefix.as_str())) {
            Some((_, resource)) => record(&resource.group, &resource.resource),
            None => record("", ""),
        }
    }
}

impl StorageObserver for EngineMetrics {
    fn stored(&self, prefix: &str, resource: &GroupResource) {
        self.resources.write().insert(prefix.to_owned(), resource.clone());
    }
}

impl EtcdObserver for EngineMetrics {
    fn request(&self, operation: &'static str, key: &str, took: Duration, failed: bool) {
        self.with_resource(key, |group, resource| {
            let labels = [operation, group, resource];
            self.requests.with_label_values(&labels).inc();
            if failed {
                self.errors.with_label_values(&labels).inc();
            }
            self.duration.with_label_values(&labels).observe(took.as_secs_f64());
        });
    }

    fn lease(&self, objects: u64) {
        self.lease_objects.observe(objects as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_for_the_resource_that_is_stored_there_even_if_it_is_made_later() {
        let metrics = EngineMetrics::new().unwrap();
        let took = Duration::from_millis(1);
        metrics.stored("/registry/services/specs/", &GroupResource::new("", "services"));
        metrics.request("get", "/registry/example.com/widgets/n/a", took, false);
        metrics.stored("/registry/example.com/widgets/", &GroupResource::new("example.com", "widgets"));
        metrics.request("get", "/registry/example.com/widgets/n/a", took, true);
        metrics.request("get", "/registry/services/specs/n/a", took, false);
        for (group, resource, requests, errors) in
            [("", "", 1, 0), ("example.com", "widgets", 1, 1), ("", "services", 1, 0)]
        {
            let labels = ["get", group, resource];
            assert_eq!(metrics.requests.with_label_values(&labels).get(), requests, "{resource}");
            assert_eq!(metrics.errors.with_label_values(&labels).get(), errors, "{resource}");
        }
    }
}
