//! The registry of all metrics.

use super::stability::lifecycle;
use prometheus::{IntCounterVec, Opts, Registry, core::Collector, proto::MetricFamily};

/// A registry that counts its metrics by their lifecycle.
pub(crate) struct MetricRegistry {
    registry: Registry,
    registered: IntCounterVec,
}

impl MetricRegistry {
    /// A registry with the count of metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub(super) fn new() -> Result<MetricRegistry, prometheus::Error> {
        let registered = Opts::new(
            "registered_metrics_total",
            "Metrics by stability level and the version that deprecates them.",
        );
        let registered = IntCounterVec::new(registered, &["stability_level", "deprecated_version"])?;
        let registry = MetricRegistry { registry: Registry::new(), registered };
        registry.register(Box::new(registry.registered.clone()))?;
        Ok(registry)
    }

    /// A registry without the count.
    ///
    /// # Errors
    /// As [`MetricRegistry::new`].
    pub(super) fn bare() -> Result<MetricRegistry, prometheus::Error> {
        MetricRegistry::new().map(|registry| MetricRegistry { registry: Registry::new(), ..registry })
    }

    /// Registers the metrics of a collector.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(crate) fn register(&self, collector: Box<dyn Collector>) -> Result<(), prometheus::Error> {
        for metric in collector.desc() {
            if let Some(lifecycle) = lifecycle(&metric.fq_name) {
                let labels = [lifecycle.level.as_str(), lifecycle.deprecated];
                self.registered.with_label_values(&labels).inc();
            }
        }
        self.registry.register(collector)
    }

    /// All metrics, by name.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}
