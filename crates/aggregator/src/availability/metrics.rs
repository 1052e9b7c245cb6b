//! The metrics of availability.

use prometheus::{
    IntCounterVec, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Counts API services that are not available.
#[derive(Clone)]
pub struct AvailabilityMetrics {
    unavailable: IntGaugeVec,
    became_unavailable: IntCounterVec,
}

impl AvailabilityMetrics {
    /// Metrics without values.
    ///
    /// # Errors
    /// When a metric is malformed, which would be a defect.
    pub fn new() -> prometheus::Result<AvailabilityMetrics> {
        Ok(AvailabilityMetrics {
            unavailable: IntGaugeVec::new(
                Opts::new(
                    "aggregator_unavailable_apiservice",
                    "Whether an API service is unavailable, by name.",
                ),
                &["name"],
            )?,
            became_unavailable: IntCounterVec::new(
                Opts::new(
                    "aggregator_unavailable_apiservice_total",
                    "How often an API service became unavailable, by name and reason.",
                ),
                &["name", "reason"],
            )?,
        })
    }

    /// Sets whether an API service is available.
    pub(crate) fn set(&self, name: &str, is_available: bool) {
        self.unavailable.with_label_values(&[name]).set(i64::from(!is_available));
    }

    /// Counts an API service that was available until now.
    pub(crate) fn count(&self, name: &str, reason: &str) {
        self.became_unavailable.with_label_values(&[name, reason]).inc();
    }

    /// Forgets an API service.
    pub(crate) fn forget(&self, name: &str) {
        // It was never set when the API service was not checked yet.
        let _ = self.unavailable.remove_label_values(&[name]);
        for family in self.became_unavailable.collect() {
            for metric in family.get_metric() {
                let value = |label: &str| metric.get_label().iter().find(|pair| pair.name() == label);
                if let (Some(of), Some(reason)) = (value("name"), value("reason"))
                    && of.value() == name
                {
                    let _ = self.became_unavailable.remove_label_values(&[name, reason.value()]);
                }
            }
        }
    }
}

impl Collector for AvailabilityMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let mut descriptions = self.unavailable.desc();
        descriptions.extend(self.became_unavailable.desc());
        descriptions
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.unavailable.collect();
        families.extend(self.became_unavailable.collect());
        families
    }
}
