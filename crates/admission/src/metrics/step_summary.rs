//! Summarizes the durations of steps by quantiles, as `apiserver_admission_step_admission_duration_seconds_summary`.

mod duration_summary;

use super::labels::Labels;
use duration_summary::DurationSummary;
use parking_lot::Mutex;
use prometheus::{
    core::{Collector, Desc},
    proto::{LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary},
};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

const NAME: &str = "apiserver_admission_step_admission_duration_seconds_summary";
const HELP: &str = "How long the steps of admission took in the last minutes, in seconds, by quantile.";
/// The quantiles that the reference publishes.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// A summary for each combination of labels. Clones share the durations.
#[derive(Clone)]
pub(super) struct StepSummary {
    desc: Desc,
    summaries: Arc<[OnceLock<Mutex<DurationSummary>>; Labels::COUNT]>,
}

impl StepSummary {
    pub(super) fn new() -> Result<StepSummary, prometheus::Error> {
        let labels = Labels::NAMES.map(str::to_owned).to_vec();
        Ok(StepSummary {
            desc: Desc::new(NAME.to_owned(), HELP.to_owned(), labels, std::collections::HashMap::new())?,
            summaries: Arc::default(),
        })
    }

    pub(super) fn observe(&self, labels: Labels, duration: Duration) {
        let Some(place) = self.summaries.get(labels.place()) else { return };
        let now = Instant::now();
        let summary = place.get_or_init(|| Mutex::new(DurationSummary::new(now)));
        summary.lock().observe(now, duration);
    }
}

impl std::fmt::Debug for StepSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepSummary").finish_non_exhaustive()
    }
}

impl Collector for StepSummary {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = Instant::now();
        let metrics: Vec<Metric> = Labels::all()
            .filter_map(|labels| {
                let mut summary = self.summaries.get(labels.place())?.get()?.lock();
                let values = summary.quantiles(now, QUANTILES);
                let mut published = Summary::default();
                published.set_sample_count(summary.count());
                published.set_sample_sum(summary.sum().as_secs_f64());
                published.set_quantile(QUANTILES.into_iter().zip(values).map(quantile).collect());
                let pairs = Labels::NAMES.into_iter().zip(labels.values()).map(label);
                let mut metric = Metric::from_label(pairs.collect());
                metric.set_summary(published);
                Some(metric)
            })
            .collect();
        if metrics.is_empty() {
            return Vec::new();
        }
        let mut family = MetricFamily::default();
        family.set_name(NAME.to_owned());
        family.set_help(HELP.to_owned());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(metrics);
        vec![family]
    }
}

/// A quantile without durations is not a number.
fn quantile((quantile, value): (f64, Option<Duration>)) -> Quantile {
    let mut published = Quantile::default();
    published.set_quantile(quantile);
    published.set_value(value.map_or(f64::NAN, |value| value.as_secs_f64()));
    published
}

fn label((name, value): (&str, &str)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Step};

    #[test]
    fn durations_are_published_by_labels() {
        let summary = StepSummary::new().unwrap();
        assert!(summary.collect().is_empty());
        let labels = Labels { step: Step::Admit, operation: Operation::Update, rejected: true };
        for _ in 0..10 {
            summary.observe(labels, Duration::from_millis(2));
        }
        let text = prometheus::TextEncoder::new().encode_to_string(&summary.collect()).unwrap();
        let labels = r#"operation="UPDATE",rejected="true",type="admit""#;
        assert!(text.contains(&format!("{NAME}_count{{{labels}}} 10\n")), "{text}");
        assert!(text.contains(&format!("{NAME}_sum{{{labels}}} 0.02\n")), "{text}");
        assert!(text.contains(&format!("{NAME}{{{labels},quantile=\"0.99\"}} 0.00")), "{text}");
        assert!(text.contains(&format!("# TYPE {NAME} summary\n")), "{text}");
    }
}
