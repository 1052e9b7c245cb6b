//! Exports metrics: adds what the stability levels say, and omits those that are hidden or disabled.

use super::{
    baseline::Baseline, configuration::MetricsConfiguration, format::Format, label_allow_list::constrain,
    metric_registry::MetricRegistry, stability::lifecycle,
};
use prometheus::{IntCounter, core::Collector as _, proto::MetricFamily};

/// The registry of all metrics, and the rules of their export.
pub(crate) struct Exposition {
    registry: MetricRegistry,
    configuration: MetricsConfiguration,
    unexpected: IntCounter,
    baseline: Baseline,
}

/// A metric that is another one under its former name.
struct Former {
    name: &'static str,
    now: &'static str,
}

/// The metrics that are deprecated for so long that they are hidden, and have a successor here. They are exported with
/// `--show-hidden-metrics-for-version`.
const HIDDEN: &[Former] = &[Former {
    name: "apiserver_request_slo_duration_seconds",
    now: "apiserver_request_sli_duration_seconds",
}];

/// The metric about recorded label values that are not allowed.
const UNEXPECTED: &str = "cardinality_enforcement_unexpected_categorizations_total";

/// Metrics whose help text says that they are an experiment.
const EXPERIMENTAL: &[&str] = &[
    "apiserver_flowcontrol_demand_seats",
    "apiserver_flowcontrol_priority_level_request_utilization",
    "apiserver_flowcontrol_priority_level_seat_utilization",
    "apiserver_flowcontrol_read_vs_write_current_requests",
];

impl Exposition {
    /// A registry with the metrics about metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub(super) fn new(configuration: &MetricsConfiguration) -> Result<Exposition, prometheus::Error> {
        let registry = MetricRegistry::new()?;
        let disabled = IntCounter::new("disabled_metrics_total", "Metrics that are disabled.")?;
        disabled.inc_by(configuration.disabled.len() as u64);
        let hidden = IntCounter::new("hidden_metrics_total", "Metrics that are hidden.")?;
        hidden.inc_by(if configuration.show_hidden { 0 } else { HIDDEN.len() as u64 });
        let unexpected = IntCounter::new(UNEXPECTED, "Recorded label values that are not allowed.")?;
        registry.register(Box::new(disabled))?;
        registry.register(Box::new(hidden))?;
        registry.register(Box::new(unexpected.clone()))?;
        Ok(Exposition {
            registry,
            configuration: configuration.clone(),
            unexpected,
            baseline: Baseline::default(),
        })
    }

    /// A registry without metrics.
    ///
    /// # Errors
    /// As [`Exposition::new`].
    pub(crate) fn bare() -> Result<Exposition, prometheus::Error> {
        let unexpected = IntCounter::new("unused", "unused")?;
        let configuration = MetricsConfiguration::default();
        Ok(Exposition {
            registry: MetricRegistry::bare()?,
            configuration,
            unexpected,
            baseline: Baseline::default(),
        })
    }

    /// The registry.
    pub(crate) fn registry(&self) -> &MetricRegistry {
        &self.registry
    }

    /// Counters and histograms with labels count from here on.
    pub(super) fn reset(&self) {
        self.baseline.set(&self.registry.gather());
    }

    /// All metrics in a format.
    pub(crate) fn encode(&self, format: Format) -> Vec<u8> {
        format.encode(&self.gather())
    }

    fn gather(&self) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        self.baseline.subtract(&mut families);
        if !self.configuration.allowed_labels.is_empty() {
            let unexpected = constrain(&mut families, &self.configuration);
            self.unexpected.inc_by(unexpected.saturating_sub(self.unexpected.get()));
            // It was gathered before the values were looked at.
            let gathered = families.iter_mut().find(|family| family.name() == UNEXPECTED);
            if let (Some(family), Some(counted)) = (gathered, self.unexpected.collect().pop()) {
                *family = counted;
            }
        }
        families.retain(|family| !self.configuration.disabled.contains(family.name()));
        if self.configuration.show_hidden {
            self.add_hidden(&mut families);
        }
        for family in &mut families {
            if let Some(found) = lifecycle(family.name()) {
                let experiment = if EXPERIMENTAL.contains(&family.name()) { "EXPERIMENTAL: " } else { "" };
                let since = match found.deprecated {
                    "" => String::new(),
                    since => format!("(Deprecated since {since}) "),
                };
                let help = format!("{experiment}[{}] {since}{}", found.level.as_str(), family.help());
                family.set_help(help);
            }
        }
        families
    }

    fn add_hidden(&self, families: &mut Vec<MetricFamily>) {
        for former in HIDDEN {
            if self.configuration.disabled.contains(former.name) {
                continue;
            }
            let now = families.iter().find(|family| family.name() == former.now);
            if let Some(mut family) = now.cloned() {
                family.set_name(former.name.to_owned());
                let place = families.partition_point(|family| family.name() < former.name);
                families.insert(place, family);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{HistogramOpts, HistogramVec};

    fn scrape(configuration: &MetricsConfiguration) -> String {
        let exposition = Exposition::new(configuration).unwrap();
        let options = HistogramOpts::new("apiserver_request_sli_duration_seconds", "Text.");
        let histogram = HistogramVec::new(options, &["verb"]).unwrap();
        histogram.with_label_values(&["GET"]).observe(1.0);
        exposition.registry().register(Box::new(histogram)).unwrap();
        let objects = IntCounter::new("apiserver_storage_objects", "Text.").unwrap();
        exposition.registry().register(Box::new(objects)).unwrap();
        let own = IntCounter::new("pintle_own", "Text.").unwrap();
        exposition.registry().register(Box::new(own)).unwrap();
        String::from_utf8(exposition.encode(Format::negotiate(""))).unwrap()
    }

    #[test]
    fn help_texts_tell_the_lifecycle() {
        let text = scrape(&MetricsConfiguration::default());
        for line in [
            "# HELP apiserver_request_sli_duration_seconds [ALPHA] Text.",
            "# HELP apiserver_storage_objects [STABLE] (Deprecated since 1.34.0) Text.",
            "# HELP pintle_own Text.",
            r#"registered_metrics_total{deprecated_version="1.34.0",stability_level="STABLE"} 1"#,
            "hidden_metrics_total 1",
            "disabled_metrics_total 0",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
        assert!(!text.contains("_slo_"));
    }

    #[test]
    fn metrics_are_hidden_and_disabled() {
        let mut configuration = MetricsConfiguration { show_hidden: true, ..MetricsConfiguration::default() };
        configuration.disabled.extend(["pintle_own".to_owned(), "no_such".to_owned()]);
        let text = scrape(&configuration);
        assert!(!text.contains("pintle_own"));
        assert!(text.contains("disabled_metrics_total 2\n"));
        let former =
            "# HELP apiserver_request_slo_duration_seconds [ALPHA] (Deprecated since 1.27.0) Text.\n";
        assert!(text.contains(former), "{text}");
        assert!(text.contains("apiserver_request_slo_duration_seconds_count{verb=\"GET\"} 1\n"));
        configuration.disabled.insert("apiserver_request_slo_duration_seconds".to_owned());
        assert!(!scrape(&configuration).contains("_slo_"));
    }

    #[test]
    fn label_values_that_are_not_allowed_are_counted_in_the_same_scrape() {
        let mut configuration = MetricsConfiguration::default();
        let allowed = [("verb".to_owned(), ["LIST".to_owned()].into())];
        configuration
            .allowed_labels
            .insert("apiserver_request_sli_duration_seconds".to_owned(), allowed.into());
        let text = scrape(&configuration);
        assert!(text.contains("_count{verb=\"unexpected\"} 1\n"), "{text}");
        assert!(text.contains("\ncardinality_enforcement_unexpected_categorizations_total 1\n"), "{text}");
    }
}
