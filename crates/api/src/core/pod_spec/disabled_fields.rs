//! Drops the fields of disabled features from a spec, without an error, unless the stored spec uses them already.
//!
//! Disabled unless their gates are open are: custom stop signals, scheduling groups, and the cluster trust bundle and
//! pod certificate sources of projected volumes.

use super::containers_of::{containers, for_each_mut};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

/// The sources of projected volumes that are behind gates.
const PROJECTIONS: [(&str, Gate); 2] = [
    ("clusterTrustBundle", Gate::ClusterTrustBundleProjection),
    ("podCertificate", Gate::PodCertificateRequest),
];

/// Drops the fields of disabled features, unless the stored spec uses them already.
pub fn drop_disabled_fields(spec: &mut Value, old: Option<&Value>) {
    for (source, gate) in PROJECTIONS {
        if !enabled(gate) && !old.is_some_and(|old| uses_projection(old, source)) {
            for volume in spec.items_at_mut("volumes") {
                for projection in volume.items_at_mut("projected.sources") {
                    projection.remove_at(source);
                }
            }
        }
    }
    if !enabled(Gate::GenericWorkload) && old.and_then(|old| old.at("schedulingGroup")).is_none() {
        spec.remove_at("schedulingGroup");
    }
    if !enabled(Gate::ContainerStopSignals) && !old.is_some_and(uses_stop_signal) {
        for_each_mut(spec, |_, container| drop_stop_signal(container));
    }
}

fn uses_projection(spec: &Value, source: &str) -> bool {
    spec.items_at("volumes")
        .iter()
        .flat_map(|volume| volume.items_at("projected.sources"))
        .any(|projection| projection.at(source).is_some())
}

fn uses_stop_signal(spec: &Value) -> bool {
    containers(spec).any(|(_, container)| container.at("lifecycle.stopSignal").is_some())
}

/// Drops the stop signal, and a lifecycle that has no other field.
fn drop_stop_signal(container: &mut Value) {
    if container.at("lifecycle.stopSignal").is_some() {
        container.remove_at("lifecycle.stopSignal");
        if container.map_at("lifecycle").values().all(Value::is_null) {
            container.remove_at("lifecycle");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::drop_disabled_fields;
    use pintle_machinery::{Value, json};

    #[test]
    fn fields_of_features_that_are_off_go_unless_they_were_there() {
        let rows: &[(Value, Value)] = &[
            (json!({"schedulingGroup": {"podGroupName": "g"}}), json!({})),
            (json!({"containers": [{"lifecycle": {"stopSignal": "SIGINT"}}]}), json!({"containers": [{}]})),
            (
                json!({"initContainers": [{"lifecycle": {"stopSignal": "SIGINT", "preStop": {}}}]}),
                json!({"initContainers": [{"lifecycle": {"preStop": {}}}]}),
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"clusterTrustBundle": {}}, {"podCertificate": {}}]}}]}),
                json!({"volumes": [{"projected": {"sources": [{}, {}]}}]}),
            ),
        ];
        for (given, wanted) in rows {
            let mut spec = given.clone();
            drop_disabled_fields(&mut spec, None);
            assert_eq!(spec, *wanted);
            let mut spec = given.clone();
            drop_disabled_fields(&mut spec, Some(given));
            assert_eq!(spec, *given);
        }
    }
}
