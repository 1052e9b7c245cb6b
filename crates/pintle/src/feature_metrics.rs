//! The metrics of feature gates and versions.

use pintle_feature_gates::FeatureGates;
use prometheus::{IntGaugeVec, Opts, core::Collector};

/// The metrics of gates: a value for each gate, and the versions.
///
/// # Errors
/// When a name is invalid, which the names here are not.
pub(crate) fn feature_metrics(
    gates: &FeatureGates,
    binary: &str,
) -> Result<Vec<Box<dyn Collector>>, prometheus::Error> {
    let opts = Opts::new("kubernetes_feature_enabled", "Feature gates, by name and stage: 1 if it is open.");
    let features = IntGaugeVec::new(opts, &["name", "stage"])?;
    for state in gates.known() {
        let labels = [state.gate.name(), state.stage.name()];
        features.with_label_values(&labels).set(state.enabled.into());
    }
    let opts =
        Opts::new("version_info", "The version of the binary, and those it emulates, of each component.");
    let versions = IntGaugeVec::new(opts, &["component", "binary", "emulation", "min_compat"])?;
    let effective = gates.versions();
    let (emulation, min_compatibility) =
        (effective.emulation.to_string(), effective.min_compatibility.to_string());
    versions.with_label_values(&["kube", binary, &emulation, &min_compatibility]).set(1);
    Ok(vec![Box::new(features), Box::new(versions)])
}
