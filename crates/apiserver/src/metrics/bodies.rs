//! Records the sizes of request bodies.

use super::metric_registry::MetricRegistry;
use prometheus::{Histogram, HistogramOpts, HistogramVec};
use std::sync::OnceLock;

/// The verbs whose bodies are recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BodyVerb {
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// The sizes of request bodies.
pub(crate) struct BodyMetrics {
    sizes: HistogramVec,
}

/// The series of one resource: each is found by its first request.
#[derive(Default)]
pub(crate) struct BodySeries([OnceLock<Histogram>; 5]);

impl BodyMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<BodyMetrics, prometheus::Error> {
        // The limit of a body is 3 MB.
        let bounds = (0..31).map(|place| 50_000.0 + 100_000.0 * f64::from(place)).collect();
        let options = HistogramOpts::new(
            "apiserver_request_body_size_bytes",
            "The size of request bodies, in bytes, by resource and verb.",
        );
        let sizes = HistogramVec::new(options.buckets(bounds), &["resource", "verb", "group"])?;
        registry.register(Box::new(sizes.clone()))?;
        Ok(BodyMetrics { sizes })
    }

    /// Records the size of a body, in bytes.
    pub(crate) fn read(
        &self,
        series: &BodySeries,
        group: &str,
        resource: &str,
        verb: BodyVerb,
        bytes: usize,
    ) {
        let (place, verb) = match verb {
            BodyVerb::Create => (0, "create"),
            BodyVerb::Update => (1, "update"),
            BodyVerb::Patch => (2, "patch"),
            BodyVerb::Delete => (3, "delete"),
            BodyVerb::DeleteCollection => (4, "delete_collection"),
        };
        let Some(place) = series.0.get(place) else { return };
        place.get_or_init(|| self.sizes.with_label_values(&[resource, verb, group])).observe(bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;

    #[test]
    fn each_verb_has_a_series() {
        let sizes = HistogramVec::new(HistogramOpts::new("a", "b"), &["resource", "verb", "group"]).unwrap();
        let metrics = BodyMetrics { sizes };
        let series = BodySeries::default();
        for verb in [
            BodyVerb::Create,
            BodyVerb::Update,
            BodyVerb::Patch,
            BodyVerb::Delete,
            BodyVerb::DeleteCollection,
        ] {
            metrics.read(&series, "", "pods", verb, 1);
        }
        let families = metrics.sizes.collect();
        let verb = |metric: &prometheus::proto::Metric| {
            let mut labels = metric.get_label().iter();
            labels.find(|label| label.name() == "verb").map(|label| label.value().to_owned())
        };
        let mut verbs: Vec<_> = families[0].get_metric().iter().filter_map(verb).collect();
        verbs.sort();
        assert_eq!(verbs, ["create", "delete", "delete_collection", "patch", "update"]);
    }
}
