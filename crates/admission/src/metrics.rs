//! The metrics of admission, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use crate::Operation;
use prometheus::{Histogram, HistogramOpts, HistogramVec, core::Collector};
use std::{sync::OnceLock, time::Duration};

/// The upper bounds of durations, in seconds.
const DURATIONS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// The durations of admission.
#[derive(Debug, Clone)]
pub struct AdmissionMetrics {
    controllers: HistogramVec,
    steps: HistogramVec,
}

impl AdmissionMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub fn new() -> Result<AdmissionMetrics, prometheus::Error> {
        Ok(AdmissionMetrics {
            controllers: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_admission_controller_admission_duration_seconds",
                    "The duration of a call of an admission plugin, in seconds, by plugin, operation and step.",
                )
                .buckets(DURATIONS.to_vec()),
                &["name", "operation", "rejected", "type"],
            )?,
            steps: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_admission_step_admission_duration_seconds",
                    "The duration of a step of admission with all its plugins, in seconds, by operation and step.",
                )
                .buckets(DURATIONS.to_vec()),
                &["operation", "rejected", "type"],
            )?,
        })
    }

    /// The collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.controllers.clone()), Box::new(self.steps.clone())]
    }

    /// The durations of one plugin.
    pub(crate) fn of_plugin(&self, name: &'static str) -> Durations {
        Durations::new(self.controllers.clone(), Some(name))
    }

    /// The durations of the steps with all plugins.
    pub(crate) fn of_steps(&self) -> Durations {
        Durations::new(self.steps.clone(), None)
    }
}

/// A step of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Plugins may change the object.
    Admit,
    /// Plugins may refuse the object.
    Validate,
}

/// The histograms of a plugin or of all, found once for each combination of labels.
pub(crate) struct Durations {
    histograms: HistogramVec,
    name: Option<&'static str>,
    found: [OnceLock<Histogram>; 16],
}

impl Durations {
    fn new(histograms: HistogramVec, name: Option<&'static str>) -> Durations {
        Durations { histograms, name, found: Default::default() }
    }

    pub(crate) fn observe(&self, step: Step, operation: Operation, rejected: bool, duration: Duration) {
        let place = operation as usize * 4 + step as usize * 2 + usize::from(rejected);
        let Some(place) = self.found.get(place) else { return };
        let histogram = place.get_or_init(|| {
            let rejected = if rejected { "true" } else { "false" };
            let step = match step {
                Step::Admit => "admit",
                Step::Validate => "validate",
            };
            let labels = [operation.as_str(), rejected, step];
            match self.name {
                Some(name) => self.histograms.with_label_values(&[name, labels[0], labels[1], labels[2]]),
                None => self.histograms.with_label_values(&labels),
            }
        });
        histogram.observe(duration.as_secs_f64());
    }
}
