//! The metrics of dials through proxies, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use super::konnectivity::KonnectivityMetrics;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::time::Duration;

/// The metrics of one server.
#[derive(Clone)]
pub struct EgressMetrics {
    starts: IntCounterVec,
    durations: HistogramVec,
    failures: IntCounterVec,
    konnectivity: KonnectivityMetrics,
}

/// The metrics of one proxy.
pub(super) struct ProxyMetrics {
    of: EgressMetrics,
    protocol: &'static str,
    transport: &'static str,
}

/// The part of a dial that failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// The connection to the proxy.
    Connect,
    /// The proxy's connection to the destination.
    Proxy,
}

impl EgressMetrics {
    /// Metrics without values.
    ///
    /// # Errors
    /// When a metric is malformed, which would be a defect.
    pub fn new() -> prometheus::Result<EgressMetrics> {
        let labels = ["protocol", "transport"];
        Ok(EgressMetrics {
            konnectivity: KonnectivityMetrics::new()?,
            starts: IntCounterVec::new(
                Opts::new(
                    "apiserver_egress_dialer_dial_start_total",
                    "Dials through egress proxies, by protocol and transport.",
                ),
                &labels,
            )?,
            durations: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_egress_dialer_dial_duration_seconds",
                    "How long dials through egress proxies took, in seconds.",
                )
                .buckets(vec![0.005, 0.025, 0.1, 0.5, 2.5, 12.5]),
                &labels,
            )?,
            failures: IntCounterVec::new(
                Opts::new(
                    "apiserver_egress_dialer_dial_failure_count",
                    "Dials through egress proxies that failed, by the stage: connect is that to the proxy.",
                ),
                &["protocol", "transport", "stage"],
            )?,
        })
    }

    /// The metrics of konnectivity's client.
    pub(super) fn konnectivity(&self) -> KonnectivityMetrics {
        self.konnectivity.clone()
    }

    pub(super) fn of(&self, protocol: &'static str, transport: &'static str) -> ProxyMetrics {
        ProxyMetrics { of: self.clone(), protocol, transport }
    }
}

impl ProxyMetrics {
    /// Counts a dial.
    pub(super) fn start(&self) {
        let starts: IntCounter = self.of.starts.with_label_values(&[self.protocol, self.transport]);
        starts.inc();
    }

    /// Records the time of a dial that succeeded.
    pub(super) fn dialed(&self, took: Duration) {
        let durations: Histogram = self.of.durations.with_label_values(&[self.protocol, self.transport]);
        durations.observe(took.as_secs_f64());
    }

    /// Counts a dial that failed.
    pub(super) fn failed(&self, stage: Stage) {
        let stage = match stage {
            Stage::Connect => "connect",
            Stage::Proxy => "proxy",
        };
        self.of.failures.with_label_values(&[self.protocol, self.transport, stage]).inc();
    }
}

impl Collector for EgressMetrics {
    fn desc(&self) -> Vec<&Desc> {
        [self.starts.desc(), self.durations.desc(), self.failures.desc(), self.konnectivity.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        [
            self.starts.collect(),
            self.durations.collect(),
            self.failures.collect(),
            self.konnectivity.collect(),
        ]
        .concat()
    }
}
