//! Metrics of the repair of allocations, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use prometheus::{IntCounter, IntCounterVec, Opts, core::Collector};

/// The metrics of the repair of cluster IPs or of node ports.
#[derive(Debug, Clone)]
pub(super) struct RepairMetrics {
    found: IntCounterVec,
    failures: IntCounter,
}

/// A difference between services and allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// No service holds the allocation.
    Leak,
    /// A service holds what is not allocated.
    Unallocated,
    /// Two services hold the same.
    Duplicate,
    /// A service holds what is in no range of this server.
    OutOfRange,
}

impl Difference {
    fn as_str(self) -> &'static str {
        match self {
            Difference::Leak => "leak",
            Difference::Unallocated => "repair",
            Difference::Duplicate => "duplicate",
            Difference::OutOfRange => "outOfRange",
        }
    }
}

impl RepairMetrics {
    /// The metrics of cluster IPs.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub(super) fn of_cluster_ips() -> Result<RepairMetrics, prometheus::Error> {
        RepairMetrics::new("apiserver_clusterip_repair", "ip_errors_total", "cluster IPs")
    }

    /// The metrics of node ports.
    ///
    /// # Errors
    /// As [`RepairMetrics::of_cluster_ips`].
    pub(super) fn of_node_ports() -> Result<RepairMetrics, prometheus::Error> {
        RepairMetrics::new("apiserver_nodeport_repair", "port_errors_total", "node ports")
    }

    fn new(prefix: &str, found: &str, allocated: &str) -> Result<RepairMetrics, prometheus::Error> {
        let found = Opts::new(
            format!("{prefix}_{found}"),
            format!("Differences between services and allocated {allocated} that the repair found, by type."),
        );
        Ok(RepairMetrics {
            found: IntCounterVec::new(found, &["type"])?,
            failures: IntCounter::new(
                format!("{prefix}_reconcile_errors_total"),
                format!("Repairs of allocated {allocated} that failed."),
            )?,
        })
    }

    /// The metrics, to be registered.
    pub(super) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.found.clone()), Box::new(self.failures.clone())]
    }

    /// Counts a difference.
    pub(super) fn found(&self, difference: Difference) {
        self.found.with_label_values(&[difference.as_str()]).inc();
    }

    /// Counts a repair, if it failed.
    pub(super) fn ended<T, E>(&self, result: &Result<T, E>) {
        if result.is_err() {
            self.failures.inc();
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self, difference: Difference) -> u64 {
        self.found.with_label_values(&[difference.as_str()]).get()
    }
}
