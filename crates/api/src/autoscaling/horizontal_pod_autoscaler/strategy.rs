//! The strategy of autoscalers, on the second version. They have no generation.

use super::validation;
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::rules;
use pintle_feature_gates::Gate;
use pintle_machinery::{ErrorList, Value, ValueExt, json};
use pintle_registry::{RequestContext, Strategy};

const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// The fields behind a gate.
const GATED: &[GatedFields] = &[GatedFields {
    gates: &[Gate::HPAConfigurableTolerance],
    fields: &["spec.behavior.scaleDown.tolerance", "spec.behavior.scaleUp.tolerance"],
}];

pub(super) struct HorizontalPodAutoscalerStrategy;

impl Strategy for HorizontalPodAutoscalerStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        object.set_default("spec.minReplicas", 1);
        set_default_metrics(object);
        if object.at("spec.behavior").is_some() {
            set_behavior_defaults(object);
        }
    }

    /// Validation rejects an empty list of policies.
    fn defaults_of_absent(&self) -> &'static [&'static str] {
        &["spec.behavior.scaleUp.policies", "spec.behavior.scaleDown.policies"]
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
        drop_disabled(GATED, object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validation::validate_spec(object, None));
        errors
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled(GATED, object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validation::validate_spec(object, Some(old)));
        errors
    }
}

/// Defaults the metrics to CPU utilization.
pub(super) fn set_default_metrics(object: &mut Value) {
    if object.items_at("spec.metrics").is_empty() {
        object.set(
            "spec.metrics",
            json!([{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION},
                },
            }]),
        );
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        HorizontalPodAutoscalerStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(rules::nonnegative(object, "status.currentReplicas"));
        errors.extend(rules::nonnegative(object, "status.desiredReplicas"));
        errors
    }
}

/// Defaults all fields of a behavior that is present, except the stabilization window for scaling down, which is a flag
/// of the controller.
fn set_behavior_defaults(object: &mut Value) {
    object.set_default("spec.behavior.scaleUp.stabilizationWindowSeconds", 0);
    object.set_default(
        "spec.behavior.scaleUp.policies",
        json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]),
    );
    object.set_default(
        "spec.behavior.scaleDown.policies",
        json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
    );
    for direction in ["scaleUp", "scaleDown"] {
        object.set_default(&format!("spec.behavior.{direction}.selectPolicy"), "Max");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behavior_is_completed() {
        let mut object = json!({"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}});
        HorizontalPodAutoscalerStrategy.set_defaults(&mut object);
        let once = object.clone();
        HorizontalPodAutoscalerStrategy.set_defaults(&mut object);
        assert_eq!(object, once);
        let behavior = &object["spec"]["behavior"];
        assert_eq!(behavior["scaleDown"]["selectPolicy"], json!("Disabled"));
        assert_eq!(behavior["scaleDown"].get("stabilizationWindowSeconds"), None);
        assert_eq!(behavior["scaleUp"]["policies"][0]["value"], json!(4));
        assert_eq!(object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], json!(80));
    }
}
