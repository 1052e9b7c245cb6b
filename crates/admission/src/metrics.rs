//! The metrics of admission, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

mod labels;
mod step_summary;

pub(crate) use labels::Labels;

use prometheus::{Histogram, HistogramOpts, HistogramVec, core::Collector};
use std::{sync::OnceLock, time::Duration};
use step_summary::StepSummary;

/// The upper bounds of durations, in seconds.
const DURATIONS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// The durations of admission.
#[derive(Debug, Clone)]
pub struct AdmissionMetrics {
    controllers: HistogramVec,
    steps: HistogramVec,
    summary: StepSummary,
}

impl AdmissionMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub fn new() -> Result<AdmissionMetrics, prometheus::Error> {
        let [operation, rejected, step] = Labels::NAMES;
        Ok(AdmissionMetrics {
            controllers: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_admission_controller_admission_duration_seconds",
                    "How long admission plugins took, in seconds, by plugin, operation and type of admission.",
                )
                .buckets(DURATIONS.to_vec()),
                &["name", operation, rejected, step],
            )?,
            steps: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_admission_step_admission_duration_seconds",
                    "How long the steps of admission took, in seconds, by operation and type of admission.",
                )
                .buckets(DURATIONS.to_vec()),
                &Labels::NAMES,
            )?,
            summary: StepSummary::new()?,
        })
    }

    /// The collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.controllers.clone()), Box::new(self.steps.clone()), Box::new(self.summary.clone())]
    }

    /// The durations of one plugin.
    pub(crate) fn of_plugin(&self, name: &'static str) -> Durations {
        Durations::new(self.controllers.clone(), Some(name), None)
    }

    /// The durations of the steps with all plugins.
    pub(crate) fn of_steps(&self) -> Durations {
        Durations::new(self.steps.clone(), None, Some(self.summary.clone()))
    }
}

/// The histograms of a plugin or of all, found once for each combination of labels.
pub(crate) struct Durations {
    histograms: HistogramVec,
    name: Option<&'static str>,
    found: [OnceLock<Histogram>; Labels::COUNT],
    summary: Option<StepSummary>,
}

impl Durations {
    fn new(histograms: HistogramVec, name: Option<&'static str>, summary: Option<StepSummary>) -> Durations {
        Durations { histograms, name, found: Default::default(), summary }
    }

    pub(crate) fn observe(&self, labels: Labels, duration: Duration) {
        let Some(place) = self.found.get(labels.place()) else { return };
        let histogram = place.get_or_init(|| {
            let values = labels.values();
            match self.name {
                Some(name) => self.histograms.with_label_values(&[name, values[0], values[1], values[2]]),
                None => self.histograms.with_label_values(&values),
            }
        });
        histogram.observe(duration.as_secs_f64());
        if let Some(summary) = &self.summary {
            summary.observe(labels, duration);
        }
    }
}
