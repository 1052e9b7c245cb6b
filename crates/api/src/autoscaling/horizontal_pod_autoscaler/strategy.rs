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

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
        drop_disabled(GATED, object, None);
        remove_default_policies(context, object);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validation::validate_spec(object, None));
        errors
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled(GATED, object, Some(old));
        remove_default_policies(context, object);
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

/// Removes the default policies where the body has an empty list, which has no default, and which validation rejects.
fn remove_default_policies(context: &RequestContext<'_>, object: &mut Value) {
    for policies in ["spec.behavior.scaleUp.policies", "spec.behavior.scaleDown.policies"] {
        if context.empty_fields.contains(policies) {
            object.remove_at(policies);
        }
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
    use pintle_machinery::codec::EmptyField;
    use pintle_registry::{
        EmptyFields,
        testing::{MemoryRegistry, with_context},
    };

    #[test]
    fn an_empty_list_of_policies_has_no_default() {
        let empty_fields = EmptyFields::default();
        let policies = "spec.behavior.scaleDown.policies";
        empty_fields.set(vec![EmptyField { path: policies.to_owned(), value: json!([]) }]);
        let mut object = json!({"spec": {"behavior": {}}});
        HorizontalPodAutoscalerStrategy.set_defaults(&mut object);
        with_context(&MemoryRegistry::default(), "n", false, |context| {
            let context = RequestContext { empty_fields: &empty_fields, ..*context };
            HorizontalPodAutoscalerStrategy.prepare_for_create(&context, &mut object);
        });
        assert!(object.items_at(policies).is_empty());
        assert_eq!(object.items_at("spec.behavior.scaleUp.policies").len(), 2);
    }

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
