//! Metrics of the token cache, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, core::Collector};
use std::time::Duration;

/// The metrics of a token cache.
#[derive(Clone)]
pub struct TokenCacheMetrics {
    durations: HistogramVec,
    requests: IntCounterVec,
    fetches: IntCounterVec,
    active: IntGaugeVec,
}

impl TokenCacheMetrics {
    pub(crate) fn new() -> Result<TokenCacheMetrics, prometheus::Error> {
        let name = |name: &str| format!("authentication_token_cache_{name}");
        let durations = HistogramOpts::new(
            name("request_duration_seconds"),
            "How long a token took, by whether it was in the cache.",
        );
        Ok(TokenCacheMetrics {
            durations: HistogramVec::new(durations, &["status"])?,
            requests: IntCounterVec::new(
                Opts::new(name("request_total"), "Tokens, by whether they were in the cache."),
                &["status"],
            )?,
            fetches: IntCounterVec::new(
                Opts::new(name("fetch_total"), "Tokens that were asked about, by result."),
                &["status"],
            )?,
            active: IntGaugeVec::new(
                Opts::new(
                    name("active_fetch_count"),
                    "Tokens that are asked about, and requests that wait for it.",
                ),
                &["status"],
            )?,
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.durations.clone()),
            Box::new(self.requests.clone()),
            Box::new(self.fetches.clone()),
            Box::new(self.active.clone()),
        ]
    }

    pub(super) fn observe(&self, hit: bool, took: Duration) {
        let status = if hit { "hit" } else { "miss" };
        self.requests.with_label_values(&[status]).inc();
        self.durations.with_label_values(&[status]).observe(took.as_secs_f64());
    }

    /// Counts a waiting request, until it is dropped.
    pub(super) fn blocked(&self) -> Active {
        Active::new(self.active.with_label_values(&["blocked"]))
    }
}

/// A gauge that counts one until it is dropped.
pub(super) struct Active(IntGauge);

impl Active {
    fn new(gauge: IntGauge) -> Active {
        gauge.inc();
        Active(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A call to the authenticator in flight.
pub(super) struct Fetch {
    metrics: TokenCacheMetrics,
    _active: Active,
}

impl Fetch {
    pub(super) fn start(metrics: TokenCacheMetrics) -> Fetch {
        let active = Active::new(metrics.active.with_label_values(&["in_flight"]));
        Fetch { metrics, _active: active }
    }

    pub(super) fn end(self, is_ok: bool) {
        let status = if is_ok { "ok" } else { "error" };
        self.metrics.fetches.with_label_values(&[status]).inc();
    }
}
