//! The metrics of an external signer.

use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounterVec, Opts, core::Collector};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The upper bounds of the durations of calls, in seconds.
const DURATIONS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The metrics of an external signer, under Kubernetes' names.
#[derive(Debug)]
pub struct ExternalSignerMetrics {
    fetch_success: Gauge,
    data_time: Gauge,
    fetches: IntCounterVec,
    signatures: IntCounterVec,
    durations: HistogramVec,
}

impl ExternalSignerMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// When a description is invalid.
    pub fn new() -> prometheus::Result<ExternalSignerMetrics> {
        let opts = |name: &str, help: &str| Opts::new(format!("apiserver_externaljwt_{name}"), help);
        let histogram = HistogramOpts::from(opts(
            "request_duration_seconds",
            "Request duration and time for calls to external-jwt-signer",
        ));
        Ok(ExternalSignerMetrics {
            fetch_success: Gauge::with_opts(opts(
                "fetch_keys_success_timestamp",
                "Unix Timestamp in seconds of the last successful FetchKeys request",
            ))?,
            data_time: Gauge::with_opts(opts(
                "fetch_keys_data_timestamp",
                "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the \
                 external signer",
            ))?,
            fetches: IntCounterVec::new(
                opts("fetch_keys_request_total", "Total attempts at syncing supported JWKs"),
                &["code"],
            )?,
            signatures: IntCounterVec::new(
                opts("sign_request_total", "Total attempts at signing JWT"),
                &["code"],
            )?,
            durations: HistogramVec::new(histogram.buckets(DURATIONS.to_vec()), &["method", "code"])?,
        })
    }

    /// All collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.fetch_success.clone()),
            Box::new(self.data_time.clone()),
            Box::new(self.fetches.clone()),
            Box::new(self.signatures.clone()),
            Box::new(self.durations.clone()),
        ]
    }

    pub(super) fn called(&self, method: &str, code: &str, took: Duration) {
        self.durations.with_label_values(&[method, code]).observe(took.as_secs_f64());
    }

    pub(super) fn fetched(&self, code: &str) {
        self.fetches.with_label_values(&[code]).inc();
        if code == "OK" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.fetch_success.set(now.as_secs_f64());
        }
    }

    pub(super) fn told(&self, seconds: f64) {
        self.data_time.set(seconds);
    }

    pub(super) fn signed(&self, code: &str) {
        self.signatures.with_label_values(&[code]).inc();
    }
}
