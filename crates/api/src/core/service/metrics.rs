//! Metrics of the allocation of cluster IPs and node ports, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).
//!
//! They belong to the process: allocations are made far from any server.

use super::network::AddressRange;
use pintle_go_forms::Cidr;
use prometheus::{
    Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, core::Collector,
};
use std::{
    collections::BTreeSet,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The metrics of the allocators.
#[derive(Debug)]
pub struct AllocationMetrics {
    allocated_ips: GaugeVec,
    available_ips: GaugeVec,
    ip_allocations: IntCounterVec,
    ip_errors: IntCounterVec,
    ip_durations: HistogramVec,
    allocated_ports: IntGauge,
    available_ports: IntGauge,
    port_allocations: IntCounterVec,
    port_errors: IntCounterVec,
    /// The blocks that have series.
    cidrs: Mutex<BTreeSet<String>>,
}

/// How an address or port was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// By the client.
    Static,
    /// By the allocator.
    Dynamic,
}

const SCOPES: [Scope; 2] = [Scope::Static, Scope::Dynamic];

impl Scope {
    fn as_str(self) -> &'static str {
        match self {
            Scope::Static => "static",
            Scope::Dynamic => "dynamic",
        }
    }
}

static METRICS: LazyLock<Result<AllocationMetrics, prometheus::Error>> =
    LazyLock::new(AllocationMetrics::new);

impl AllocationMetrics {
    /// The metrics of the process; `None` if their names were invalid, which tests would reveal.
    pub fn of_process() -> Option<&'static AllocationMetrics> {
        METRICS.as_ref().ok()
    }

    fn new() -> Result<AllocationMetrics, prometheus::Error> {
        let ip = |name: &str, help: &str| {
            Opts::new(format!("kube_apiserver_clusterip_allocator_{name}"), help.to_owned())
        };
        let port = |name: &str, help: &str| {
            Opts::new(format!("kube_apiserver_nodeport_allocator_{name}"), help.to_owned())
        };
        let duration = ip("allocation_duration_seconds", "How long the allocation of a cluster IP took.");
        Ok(AllocationMetrics {
            allocated_ips: GaugeVec::new(ip("allocated_ips", "Cluster IPs in use, by block."), &["cidr"])?,
            available_ips: GaugeVec::new(ip("available_ips", "Cluster IPs left, by block."), &["cidr"])?,
            ip_allocations: IntCounterVec::new(
                ip("allocation_total", "Cluster IPs that were allocated, by block and by who chose them."),
                &["cidr", "scope"],
            )?,
            ip_errors: IntCounterVec::new(
                ip("allocation_errors_total", "Cluster IPs that could not be allocated."),
                &["cidr", "scope"],
            )?,
            ip_durations: HistogramVec::new(HistogramOpts::from(duration), &["cidr"])?,
            allocated_ports: IntGauge::with_opts(port("allocated_ports", "Node ports in use."))?,
            available_ports: IntGauge::with_opts(port("available_ports", "Node ports left."))?,
            port_allocations: IntCounterVec::new(
                port("allocation_total", "Node ports that were allocated, by who chose them."),
                &["scope"],
            )?,
            port_errors: IntCounterVec::new(
                port("allocation_errors_total", "Node ports that could not be allocated."),
                &["scope"],
            )?,
            cidrs: Mutex::default(),
        })
    }

    /// The metrics, to be registered.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.allocated_ips.clone()),
            Box::new(self.available_ips.clone()),
            Box::new(self.ip_allocations.clone()),
            Box::new(self.ip_errors.clone()),
            Box::new(self.ip_durations.clone()),
            Box::new(self.allocated_ports.clone()),
            Box::new(self.available_ports.clone()),
            Box::new(self.port_allocations.clone()),
            Box::new(self.port_errors.clone()),
        ]
    }

    fn cidrs(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.cidrs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an address that was allocated.
    pub(super) fn ip_allocated(&self, cidr: Cidr, scope: Scope, took: Duration) {
        let cidr = cidr.canonical();
        self.ip_allocations.with_label_values(&[&cidr, scope.as_str()]).inc();
        self.ip_durations.with_label_values(&[&cidr]).observe(took.as_secs_f64());
        self.moved(&cidr, 1.0);
    }

    /// Counts an address that could not be allocated.
    pub(super) fn ip_failed(&self, cidr: Cidr, scope: Scope) {
        self.ip_errors.with_label_values(&[&cidr.canonical(), scope.as_str()]).inc();
    }

    /// Counts an address that was released.
    pub(super) fn ip_released(&self, cidr: Cidr) {
        self.moved(&cidr.canonical(), -1.0);
    }

    /// Whether the number of allocated addresses of a block is known.
    pub(super) fn knows(&self, cidr: Cidr) -> bool {
        self.cidrs().contains(&cidr.canonical())
    }

    fn moved(&self, cidr: &str, allocated: f64) {
        // Of other blocks the number of addresses is not known before the next run of the repair.
        if self.cidrs().contains(cidr) {
            let used: Gauge = self.allocated_ips.with_label_values(&[cidr]);
            used.add(allocated);
            self.available_ips.with_label_values(&[cidr]).sub(allocated);
        }
    }

    /// Sets the number of allocated addresses of all blocks. The series of other blocks are removed.
    pub(super) fn set_ips(&self, allocated: &[(Cidr, usize)]) {
        let mut cidrs = BTreeSet::new();
        for (cidr, used) in allocated {
            let label = cidr.canonical();
            let size = AddressRange::of(*cidr).size() as f64;
            self.allocated_ips.with_label_values(&[&label]).set(*used as f64);
            self.available_ips.with_label_values(&[&label]).set((size - *used as f64).max(0.0));
            cidrs.insert(label);
        }
        let mut known = self.cidrs();
        for gone in known.difference(&cidrs) {
            // A series that never existed cannot be removed.
            let _ = self.allocated_ips.remove_label_values(&[gone]);
            let _ = self.available_ips.remove_label_values(&[gone]);
            let _ = self.ip_durations.remove_label_values(&[gone]);
            for scope in SCOPES {
                let _ = self.ip_allocations.remove_label_values(&[gone.as_str(), scope.as_str()]);
                let _ = self.ip_errors.remove_label_values(&[gone.as_str(), scope.as_str()]);
            }
        }
        *known = cidrs;
    }

    /// Counts ports that were allocated.
    pub(super) fn ports_allocated(&self, scope: Scope, count: u64) {
        if count > 0 {
            self.port_allocations.with_label_values(&[scope.as_str()]).inc_by(count);
        }
    }

    /// Counts a port that could not be allocated.
    pub(super) fn port_failed(&self, scope: Scope) {
        self.port_errors.with_label_values(&[scope.as_str()]).inc();
    }

    /// Sets the number of ports in use and of all ports.
    pub(super) fn set_ports(&self, used: usize, size: usize) {
        let number = |ports: usize| i64::try_from(ports).unwrap_or(i64::MAX);
        self.allocated_ports.set(number(used));
        self.available_ports.set(number(size.saturating_sub(used)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_a_removed_block_are_removed() {
        let metrics = AllocationMetrics::new().unwrap();
        let cidr = |text: &str| Cidr::parse_sloppy(text).unwrap();
        metrics.set_ips(&[(cidr("10.0.0.0/24"), 3), (cidr("fd00::/112"), 0)]);
        metrics.ip_allocated(cidr("10.0.0.0/24"), Scope::Dynamic, Duration::from_millis(1));
        metrics.ip_failed(cidr("fd00::/112"), Scope::Static);
        metrics.ip_released(cidr("10.9.0.0/24"));
        let families = || metrics.collectors().iter().flat_map(|one| one.collect()).collect::<Vec<_>>();
        let text = || prometheus::TextEncoder::new().encode_to_string(&kept(families())).unwrap();
        fn kept(families: Vec<prometheus::proto::MetricFamily>) -> Vec<prometheus::proto::MetricFamily> {
            families.into_iter().filter(|family| !family.get_metric().is_empty()).collect()
        }
        for line in [
            "allocated_ips{cidr=\"10.0.0.0/24\"} 4",
            "available_ips{cidr=\"10.0.0.0/24\"} 250",
            "available_ips{cidr=\"fd00::/112\"} 65535",
            "allocation_total{cidr=\"10.0.0.0/24\",scope=\"dynamic\"} 1",
            "allocation_errors_total{cidr=\"fd00::/112\",scope=\"static\"} 1",
        ] {
            assert!(text().contains(&format!("kube_apiserver_clusterip_allocator_{line}\n")), "{line}");
        }
        assert!(!text().contains("10.9.0.0"));
        metrics.set_ips(&[]);
        assert!(!text().contains("cidr"), "{}", text());
    }
}
