//! The configuration of metrics: which are exported, and which values their labels may have.

use std::collections::{BTreeMap, BTreeSet};

/// The configuration of metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsConfiguration {
    /// Whether metrics that are deprecated for long are exported.
    pub show_hidden: bool,
    /// The names of metrics that are not exported.
    pub disabled: BTreeSet<String>,
    /// The allowed values of labels, by metric and label; other values are exported as `unexpected`.
    pub allowed_labels: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// The key of an allow list is not `METRIC,LABEL`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("allow-list key {0:?} is not METRIC,LABEL")]
pub struct AllowListKeyError(String);

impl MetricsConfiguration {
    /// Adds the allowed values of a label: the key is `METRIC,LABEL`, the values are separated by commas.
    ///
    /// # Errors
    /// A key without a metric or a label.
    pub fn allow(&mut self, key: &str, values: &str) -> Result<(), AllowListKeyError> {
        let (metric, label) = key
            .split_once(',')
            .filter(|(metric, label)| !metric.is_empty() && !label.is_empty())
            .ok_or_else(|| AllowListKeyError(key.to_owned()))?;
        let values = values.split(',').map(str::to_owned).collect();
        self.allowed_labels.entry(metric.to_owned()).or_default().insert(label.to_owned(), values);
        Ok(())
    }
}
