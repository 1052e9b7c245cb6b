//! The results of health checks as metrics, for `/metrics/slis`
//! (<https://kubernetes.io/docs/reference/instrumentation/slis/>).

use crate::metrics::{Exposition, Format};
use prometheus::{IntCounterVec, IntGaugeVec, Opts};
use std::sync::OnceLock;

/// The results of health checks. The metrics exist from the first check on.
#[derive(Default)]
pub(super) struct HealthMetrics(OnceLock<Option<Results>>);

struct Results {
    exposition: Exposition,
    last: IntGaugeVec,
    total: IntCounterVec,
}

impl Results {
    fn new() -> Result<Results, prometheus::Error> {
        let exposition = Exposition::bare()?;
        let last = Opts::new("kubernetes_healthcheck", "The last result of a health check: 1 if it passed.");
        let last = IntGaugeVec::new(last, &["name", "type"])?;
        let total = Opts::new("kubernetes_healthchecks_total", "The results of all health checks.");
        let total = IntCounterVec::new(total, &["name", "type", "status"])?;
        exposition.registry().register(Box::new(last.clone()))?;
        exposition.registry().register(Box::new(total.clone()))?;
        Ok(Results { exposition, last, total })
    }
}

impl HealthMetrics {
    fn results(&self) -> Option<&Results> {
        // The names are valid.
        self.0.get_or_init(|| Results::new().ok()).as_ref()
    }

    /// A check of an endpoint ran.
    pub(super) fn ran(&self, endpoint: &str, name: &str, is_ok: bool) {
        let Some(results) = self.results() else { return };
        results.last.with_label_values(&[name, endpoint]).set(i64::from(is_ok));
        let status = if is_ok { "success" } else { "error" };
        results.total.with_label_values(&[name, endpoint, status]).inc();
    }

    /// Forgets all results.
    pub(super) fn reset(&self) {
        let Some(results) = self.results() else { return };
        results.last.reset();
        results.total.reset();
    }

    /// The metrics in a format.
    pub(super) fn encode(&self, format: Format) -> Vec<u8> {
        self.results().map_or_else(Vec::new, |results| results.exposition.encode(format))
    }
}
