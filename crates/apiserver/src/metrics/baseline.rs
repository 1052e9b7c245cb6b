//! The values at the last reset: what was counted before it is not exported.
//!
//! Series are held by the code that counts, so a reset cannot remove them. It remembers their values instead, for counters and
//! histograms with labels, as the reference resets vectors alone. Gauges tell the present and stay.

use parking_lot::Mutex;
use prometheus::proto::{Bucket, Counter, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::HashMap;

/// The counted values at the last reset, by the name of the metric and its labels.
#[derive(Default)]
pub(super) struct Baseline(Mutex<HashMap<String, HashMap<Labels, Counted>>>);

/// The names and values of a series' labels.
type Labels = Vec<(String, String)>;

/// A value that only grows.
enum Counted {
    Counter(f64),
    Histogram { count: u64, sum: f64, buckets: Vec<u64> },
}

impl Baseline {
    /// Counts from the values of these families on.
    pub(super) fn set(&self, families: &[MetricFamily]) {
        let counted = families.iter().filter_map(|family| {
            let series: HashMap<_, _> = family
                .get_metric()
                .iter()
                .filter_map(|metric| Some((labels(metric)?, counted(family.get_field_type(), metric)?)))
                .collect();
            (!series.is_empty()).then(|| (family.name().to_owned(), series))
        });
        *self.0.lock() = counted.collect();
    }

    /// Takes off what was counted before the last reset. Series and families without anything since then are omitted.
    pub(super) fn subtract(&self, families: &mut Vec<MetricFamily>) {
        let baseline = self.0.lock();
        if baseline.is_empty() {
            return;
        }
        families.retain_mut(|family| {
            let Some(series) = baseline.get(family.name()) else { return true };
            family.mut_metric().retain_mut(|metric| {
                let before = labels(metric).and_then(|labels| series.get(&labels));
                before.is_none_or(|before| before.subtract_from(metric))
            });
            !family.get_metric().is_empty()
        });
    }
}

impl Counted {
    /// `false` when the series counted nothing since. A series with less than before is a new one, and stays as it is.
    fn subtract_from(&self, metric: &mut Metric) -> bool {
        match self {
            Counted::Counter(before) => {
                let now = metric.get_counter().get_value();
                if now < *before {
                    return true;
                }
                let mut counter = Counter::default();
                counter.set_value(now - before);
                metric.set_counter(counter);
                now > *before
            }
            Counted::Histogram { count, sum, buckets } => {
                let now = metric.get_histogram().clone();
                let Some(new) = now.get_sample_count().checked_sub(*count) else { return true };
                let mut histogram = Histogram::default();
                histogram.set_sample_count(new);
                histogram.set_sample_sum(now.get_sample_sum() - sum);
                let since = now.get_bucket().iter().zip(buckets).map(|(bucket, before)| {
                    let mut since = Bucket::default();
                    since.set_upper_bound(bucket.upper_bound());
                    since.set_cumulative_count(bucket.cumulative_count().saturating_sub(*before));
                    since
                });
                histogram.set_bucket(since.collect());
                metric.set_histogram(histogram);
                new > 0
            }
        }
    }
}

fn counted(field_type: MetricType, metric: &Metric) -> Option<Counted> {
    match field_type {
        MetricType::COUNTER => Some(Counted::Counter(metric.get_counter().get_value())),
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            Some(Counted::Histogram {
                count: histogram.get_sample_count(),
                sum: histogram.get_sample_sum(),
                buckets: histogram.get_bucket().iter().map(Bucket::cumulative_count).collect(),
            })
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => None,
    }
}

/// The labels of a series; `None` for a metric without labels.
fn labels(metric: &Metric) -> Option<Labels> {
    let pair = |label: &LabelPair| (label.name().to_owned(), label.value().to_owned());
    let labels: Vec<_> = metric.get_label().iter().map(pair).collect();
    (!labels.is_empty()).then_some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};

    /// The series of all families: name, labels and value.
    fn lines(families: &[MetricFamily]) -> Vec<String> {
        let text = prometheus::TextEncoder::new().encode_to_string(families).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn a_reset_takes_off_what_vectors_counted_before() {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("a_total", "Text."), &["user"]).unwrap();
        let options = HistogramOpts::new("b_seconds", "Text.").buckets(vec![1.0]);
        let histogram = HistogramVec::new(options, &["user"]).unwrap();
        let gauge = IntGaugeVec::new(Opts::new("c", "Text."), &["user"]).unwrap();
        let plain = IntCounter::new("d_total", "Text.").unwrap();
        registry.register(Box::new(counter.clone())).unwrap();
        registry.register(Box::new(histogram.clone())).unwrap();
        registry.register(Box::new(gauge.clone())).unwrap();
        registry.register(Box::new(plain.clone())).unwrap();
        let baseline = Baseline::default();
        let scrape = || {
            let mut families = registry.gather();
            baseline.subtract(&mut families);
            lines(&families)
        };
        // Series that are held count on after a reset.
        let bob = counter.with_label_values(&["bob"]);
        let durations = histogram.with_label_values(&["bob"]);
        bob.inc_by(2);
        counter.with_label_values(&["jane"]).inc();
        durations.observe(0.5);
        durations.observe(4.0);
        gauge.with_label_values(&["bob"]).set(3);
        plain.inc();
        let first = scrape();
        assert!(first.contains(&r#"a_total{user="jane"} 1"#.to_owned()), "{first:?}");

        baseline.set(&registry.gather());
        assert_eq!(scrape(), [r#"c{user="bob"} 3"#, "d_total 1"]);

        bob.inc();
        durations.observe(2.0);
        counter.with_label_values(&["new"]).inc_by(5);
        assert_eq!(
            scrape(),
            [
                r#"a_total{user="bob"} 1"#,
                r#"a_total{user="new"} 5"#,
                r#"b_seconds_bucket{user="bob",le="1"} 0"#,
                r#"b_seconds_bucket{user="bob",le="+Inf"} 1"#,
                r#"b_seconds_sum{user="bob"} 2"#,
                r#"b_seconds_count{user="bob"} 1"#,
                r#"c{user="bob"} 3"#,
                "d_total 1",
            ]
        );

        // A vector that was emptied counts anew.
        counter.reset();
        counter.with_label_values(&["bob"]).inc();
        assert!(scrape().contains(&r#"a_total{user="bob"} 1"#.to_owned()));
    }
}
