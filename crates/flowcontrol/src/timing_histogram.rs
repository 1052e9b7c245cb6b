//! Histograms of a ratio over time, with one observation per nanosecond.

use parking_lot::Mutex;
use prometheus::{
    Opts,
    core::{Collector, Desc, Describer},
    proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The histograms of one name, which differ in their labels.
#[derive(Clone)]
pub(crate) struct TimingHistogramVec {
    desc: Arc<Desc>,
    constant: Vec<(String, String)>,
    bounds: &'static [f64],
    members: Arc<Mutex<BTreeMap<Vec<String>, RatioGauge>>>,
    now: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// A ratio whose numerator and denominator are set separately. Clones share it.
#[derive(Clone)]
pub(crate) struct RatioGauge(Arc<Mutex<State>>);

struct State {
    bounds: &'static [f64],
    numerator: f64,
    denominator: f64,
    last: Duration,
    /// The nanoseconds by bucket; the last bucket has the values above all bounds.
    buckets: Vec<u64>,
    sum: f64,
}

impl TimingHistogramVec {
    /// Histograms with variable labels, and with constant ones.
    pub(crate) fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        constant: &[(&str, &str)],
        bounds: &'static [f64],
        now: Arc<dyn Fn() -> Duration + Send + Sync>,
    ) -> Result<TimingHistogramVec, prometheus::Error> {
        let mut opts = Opts::new(name, help);
        for (label, value) in constant {
            opts = opts.const_label(*label, *value);
        }
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, opts.const_labels.clone())?;
        let constant = constant.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        Ok(TimingHistogramVec {
            desc: Arc::new(desc),
            constant: constant.collect(),
            bounds,
            members: Arc::default(),
            now,
        })
    }

    /// The histogram with these label values.
    pub(crate) fn member(&self, values: &[&str]) -> RatioGauge {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let new = || RatioGauge::new(self.bounds, (self.now)());
        self.members.lock().entry(values).or_insert_with(new).clone()
    }
}

impl RatioGauge {
    fn new(bounds: &'static [f64], now: Duration) -> RatioGauge {
        RatioGauge(Arc::new(Mutex::new(State {
            bounds,
            numerator: 0.0,
            denominator: 1.0,
            last: now,
            buckets: vec![0; bounds.len() + 1],
            sum: 0.0,
        })))
    }

    /// Sets the numerator from now on.
    pub(crate) fn set(&self, now: Duration, numerator: f64) {
        let mut state = self.0.lock();
        state.advance(now);
        state.numerator = numerator;
    }

    /// Adds to the numerator.
    pub(crate) fn add(&self, now: Duration, more: f64) {
        let mut state = self.0.lock();
        state.advance(now);
        state.numerator += more;
    }

    /// Sets the denominator from now on.
    pub(crate) fn set_denominator(&self, now: Duration, denominator: f64) {
        let mut state = self.0.lock();
        state.advance(now);
        state.denominator = denominator.max(1.0);
    }

    fn observed(&self, now: Duration) -> Histogram {
        let mut state = self.0.lock();
        state.advance(now);
        let mut histogram = Histogram::default();
        let mut count = 0;
        let mut buckets = Vec::with_capacity(state.bounds.len());
        for (bound, nanoseconds) in state.bounds.iter().zip(&state.buckets) {
            count += nanoseconds;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(count);
            buckets.push(bucket);
        }
        histogram.set_bucket(buckets);
        histogram.set_sample_count(count + state.buckets.last().copied().unwrap_or_default());
        histogram.set_sample_sum(state.sum);
        histogram
    }
}

impl State {
    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let ratio = self.numerator / self.denominator;
        let nanoseconds = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let at = self.bounds.partition_point(|bound| *bound < ratio);
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket = bucket.saturating_add(nanoseconds);
        }
        self.sum += ratio * nanoseconds as f64;
    }
}

impl Collector for TimingHistogramVec {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = (self.now)();
        let members = self.members.lock();
        let metrics = members.iter().map(|(values, member)| {
            let own = self.desc.variable_labels.iter().zip(values);
            let constant = self.constant.iter().map(|(label, value)| (label, value));
            let mut labels: Vec<LabelPair> = own
                .chain(constant)
                .map(|(label, value)| {
                    let mut pair = LabelPair::default();
                    pair.set_name(label.clone());
                    pair.set_value(value.clone());
                    pair
                })
                .collect();
            labels.sort_by(|one, other| one.name().cmp(other.name()));
            let mut metric = Metric::from_label(labels);
            metric.set_histogram(member.observed(now));
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(metrics.collect());
        // A family without members would be written as a name alone.
        if family.get_metric().is_empty() { Vec::new() } else { vec![family] }
    }
}

impl Describer for TimingHistogramVec {
    fn describe(&self) -> prometheus::Result<Desc> {
        Ok((*self.desc).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Registry, TextEncoder};

    #[test]
    fn every_nanosecond_is_an_observation() {
        let vec = TimingHistogramVec::new(
            "ratio",
            "Help.",
            &["level"],
            &[("phase", "executing")],
            &[0.0, 0.5, 1.0],
            Arc::new(|| Duration::from_nanos(100)),
        )
        .unwrap();
        let gauge = RatioGauge::new(vec.bounds, Duration::ZERO);
        vec.members.lock().insert(vec!["a".to_owned()], gauge.clone());
        let at = Duration::from_nanos;
        gauge.set_denominator(at(0), 10.0);
        gauge.set(at(10), 5.0);
        gauge.add(at(30), 10.0);
        gauge.set(at(60), 1.0);
        let registry = Registry::new();
        registry.register(Box::new(vec)).unwrap();
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let expected = r#"# HELP ratio Help.
# TYPE ratio histogram
ratio_bucket{level="a",phase="executing",le="0"} 10
ratio_bucket{level="a",phase="executing",le="0.5"} 70
ratio_bucket{level="a",phase="executing",le="1"} 70
ratio_bucket{level="a",phase="executing",le="+Inf"} 100
ratio_sum{level="a",phase="executing"} 59
ratio_count{level="a",phase="executing"} 100
"#;
        assert_eq!(text, expected);
    }
}
