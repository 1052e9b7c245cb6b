//! Constrains label values to those that are allowed
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/#metric-cardinality-enforcement>).
//!
//! Values are replaced when metrics are exported: series that become equal are added. Recording costs nothing more.

use super::configuration::MetricsConfiguration;
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use std::collections::BTreeMap;

/// The value that stands for all that are not allowed.
const UNEXPECTED: &str = "unexpected";

/// Constrains the labels of families. Returns the number of recorded values that were not allowed.
pub(super) fn constrain(families: &mut [MetricFamily], configuration: &MetricsConfiguration) -> u64 {
    let mut unexpected = 0;
    for family in families {
        let Some(allowed) = configuration.allowed_labels.get(family.name()) else { continue };
        let kind = family.get_field_type();
        let mut merged: BTreeMap<Vec<(String, String)>, Metric> = BTreeMap::new();
        for mut metric in family.take_metric() {
            let mut labels = Vec::new();
            for label in metric.get_label() {
                let is_allowed =
                    allowed.get(label.name()).is_none_or(|values| values.contains(label.value()));
                if !is_allowed {
                    unexpected += recorded(&metric, kind);
                }
                let value = if is_allowed { label.value() } else { UNEXPECTED };
                labels.push((label.name().to_owned(), value.to_owned()));
            }
            metric.set_label(labels.iter().map(|(name, value)| pair(name, value)).collect());
            match merged.get_mut(&labels) {
                Some(sum) => add(sum, &metric, kind),
                None => {
                    merged.insert(labels, metric);
                }
            }
        }
        family.set_metric(merged.into_values().collect());
    }
    unexpected
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

/// How often a series was recorded. A gauge does not tell: it counts once.
fn recorded(metric: &Metric, kind: MetricType) -> u64 {
    match kind {
        MetricType::COUNTER => metric.get_counter().get_value() as u64,
        MetricType::HISTOGRAM => metric.get_histogram().get_sample_count(),
        MetricType::SUMMARY => metric.get_summary().sample_count(),
        MetricType::GAUGE | MetricType::UNTYPED => 1,
    }
}

/// Adds a series to another one of the same family.
fn add(sum: &mut Metric, metric: &Metric, kind: MetricType) {
    match kind {
        MetricType::COUNTER => {
            let mut counter = sum.get_counter().clone();
            counter.set_value(counter.get_value() + metric.get_counter().get_value());
            sum.set_counter(counter);
        }
        MetricType::GAUGE => {
            // The value that was set last counts, of which nothing is known here: the sum is at least stable.
            let mut gauge = sum.get_gauge().clone();
            gauge.set_value(gauge.get_value() + metric.get_gauge().get_value());
            sum.set_gauge(gauge);
        }
        MetricType::HISTOGRAM => {
            let (mut total, other) = (sum.get_histogram().clone(), metric.get_histogram());
            total.set_sample_count(total.get_sample_count() + other.get_sample_count());
            total.set_sample_sum(total.get_sample_sum() + other.get_sample_sum());
            let mut buckets = total.get_bucket().to_vec();
            for (bucket, other) in buckets.iter_mut().zip(other.get_bucket()) {
                bucket.set_cumulative_count(bucket.cumulative_count() + other.cumulative_count());
            }
            total.set_bucket(buckets);
            sum.set_histogram(total);
        }
        // Quantiles cannot be added: the first series stays.
        MetricType::SUMMARY | MetricType::UNTYPED => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};

    #[test]
    fn values_that_are_not_allowed_share_a_series() {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("requests", "."), &["verb", "code"]).unwrap();
        let histogram =
            HistogramVec::new(HistogramOpts::new("sizes", ".").buckets(vec![1.0, 10.0]), &["verb"]).unwrap();
        for (verb, code) in [("GET", "200"), ("PUT", "200"), ("PATCH", "200"), ("PATCH", "409")] {
            counter.with_label_values(&[verb, code]).inc();
            histogram.with_label_values(&[verb]).observe(5.0);
        }
        registry.register(Box::new(counter)).unwrap();
        registry.register(Box::new(histogram)).unwrap();
        let mut configuration = MetricsConfiguration::default();
        configuration.allow("requests,verb", "GET").unwrap();
        configuration.allow("sizes,verb", "GET,PUT").unwrap();
        configuration.allow("others,verb", "GET").unwrap();
        assert!(configuration.allow("requests", "GET").is_err());
        let mut families = registry.gather();
        assert_eq!(constrain(&mut families, &configuration), 3 + 2);
        let text = TextEncoder::new().encode_to_string(&families).unwrap();
        for line in [
            r#"requests{code="200",verb="GET"} 1"#,
            r#"requests{code="200",verb="unexpected"} 2"#,
            r#"requests{code="409",verb="unexpected"} 1"#,
            r#"sizes_bucket{verb="unexpected",le="10"} 2"#,
            r#"sizes_sum{verb="unexpected"} 10"#,
            r#"sizes_count{verb="PUT"} 1"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
        assert!(!text.contains("PATCH"));
    }
}
