//! Validates an autoscaler.

use crate::core::pod_spec::resources::validate_container_resource_name;
use crate::{field_checks, resource_list, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupVersion, Value, ValueExt,
    validation::{is_dns1123_label, validate_path_segment_name},
};

const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_STABILIZATION_SECONDS: i64 = 3600;
/// The sources of metrics, by their type name, sorted as in messages.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
/// The sources in the order of validation.
const CHECKED: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];

/// The strictness for a reference's API version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersion {
    NeedsGroup,
    MayLackGroup,
    Anything,
}

pub(super) fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    let min = object.i64_at("spec.minReplicas");
    let max = object.i64_at("spec.maxReplicas").unwrap_or_default();
    // Ratcheting: an autoscaler that could scale to zero before still may.
    let could = old.and_then(|old| old.i64_at("spec.minReplicas")) == Some(0);
    let lowest = if could || enabled(Gate::HPAScaleToZero) { 0 } else { 1 };
    if let Some(min) = min.filter(|min| *min < lowest) {
        let detail = format!("must be greater than or equal to {lowest}");
        errors.push(FieldError::invalid(&path.child("minReplicas"), min, detail));
    }
    let max_path = path.child("maxReplicas");
    if max == 0 {
        errors.push(FieldError::required(&max_path, "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(FieldError::invalid(&max_path, max, "must be greater than or equal to 1"));
    }
    if min.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(&max_path, max, "must be greater than or equal to `minReplicas`"));
    }
    let target = rules::value_at(object, "spec.scaleTargetRef");
    let api_version = scale_target_api_version(target, old);
    errors.extend(validate_reference(target, &path.child("scaleTargetRef"), api_version));
    errors.extend(validate_metrics(object, old, &path.child("metrics")));
    for direction in ["scaleUp", "scaleDown"] {
        let path = path.child("behavior").child(direction);
        if let Some(rules) = object.at(path.as_str()) {
            errors.extend(validate_scaling_rules(rules, &path));
        }
    }
    errors
}

fn scale_target_api_version(target: &Value, old: Option<&Value>) -> ApiVersion {
    let same = |old: &Value| {
        ["apiVersion", "kind"]
            .iter()
            .all(|name| target.str_at(name) == old.str_at(&format!("spec.scaleTargetRef.{name}")))
    };
    match old {
        Some(old) if same(old) => ApiVersion::Anything,
        _ if target.str_at("kind") == "ReplicationController" => ApiVersion::MayLackGroup,
        _ => ApiVersion::NeedsGroup,
    }
}

fn validate_reference(reference: &Value, path: &FieldPath, api_version: ApiVersion) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["kind", "name"] {
        let path = path.child(name);
        match reference.str_at(name) {
            "" => errors.push(FieldError::required(&path, "")),
            value => errors.extend(field_checks::invalid_each(
                &path,
                value,
                validate_path_segment_name(value, false),
            )),
        }
    }
    if let Err(why) = check_api_version(reference.str_at("apiVersion"), api_version) {
        errors.push(FieldError::invalid(&path.child("apiVersion"), reference.str_at("apiVersion"), why));
    }
    errors
}

fn check_api_version(text: &str, api_version: ApiVersion) -> Result<(), String> {
    if api_version == ApiVersion::Anything {
        return Ok(());
    }
    match GroupVersion::parse(text) {
        None => Err(format!("unexpected GroupVersion string: {text}")),
        Some(parsed) if parsed.group.is_empty() && api_version == ApiVersion::NeedsGroup => {
            Err("apiVersion must specify API group".to_owned())
        }
        Some(_) => Ok(()),
    }
}

fn validate_metrics(object: &Value, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    let metrics = object.items_at("spec.metrics");
    let had_invalid = old.is_some_and(|old| {
        let described = |metric: &Value| metric.str_at("object.describedObject.apiVersion").to_owned();
        let mut objects =
            old.items_at("spec.metrics").iter().filter(|metric| metric.str_at("type") == "Object");
        objects.any(|metric| check_api_version(&described(metric), ApiVersion::MayLackGroup).is_err())
    });
    let api_version = if had_invalid { ApiVersion::Anything } else { ApiVersion::MayLackGroup };
    let mut errors = ErrorList::new();
    for (index, metric) in metrics.iter().enumerate() {
        errors.extend(validate_metric(metric, &path.index(index), api_version));
    }
    let scales_from_zero =
        metrics.iter().any(|metric| matches!(metric.str_at("type"), "Object" | "External"));
    if object.i64_at("spec.minReplicas") == Some(0) && !scales_from_zero {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn validate_metric(metric: &Value, path: &FieldPath, api_version: ApiVersion) -> ErrorList {
    let mut errors = ErrorList::new();
    let metric_type = metric.str_at("type");
    let type_path = path.child("type");
    let types = SOURCES.map(|(name, _)| name);
    if metric_type.is_empty() {
        errors.push(FieldError::required(&type_path, "must specify a metric source type"));
    }
    let unsupported = field_checks::supported(metric_type, &types, &type_path);
    errors.extend(unsupported.clone());
    let mut present: Vec<&str> =
        CHECKED.into_iter().filter(|source| metric.field(source).is_some()).collect();
    if let Some(first) = present.first() {
        let source = rules::value_at(metric, first);
        errors.extend(validate_source(first, source, &path.child(first), api_version));
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == metric_type).map(|(_, source)| *source);
    match expected {
        Some(source) if metric.field(source).is_none() => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(source), detail));
        }
        Some(_) => {}
        None => errors.extend(unsupported),
    }
    if present.len() != 1 {
        present.retain(|source| Some(*source) != expected);
        let detail = "must populate the given metric source only";
        errors.extend(present.iter().map(|source| FieldError::forbidden(&path.child(source), detail)));
    }
    errors
}

fn validate_source(name: &str, source: &Value, path: &FieldPath, api_version: ApiVersion) -> ErrorList {
    let target = rules::value_at(source, "target");
    let target_path = path.child("target");
    let has = |member: &str| target.field(member).is_some();
    let mut errors = ErrorList::new();
    match name {
        "object" => {
            let described = rules::value_at(source, "describedObject");
            errors.extend(validate_reference(described, &path.child("describedObject"), api_version));
            errors.extend(validate_identifier(source, path));
        }
        "external" | "pods" => errors.extend(validate_identifier(source, path)),
        "containerResource" => errors.extend(validate_container_resource(source, path)),
        _ => {
            if source.str_at("name").is_empty() {
                errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
            }
        }
    }
    errors.extend(validate_target(target, &target_path));
    let required = |member: &str, detail: &str| FieldError::required(&target_path.child(member), detail);
    let forbidden = |member: &str, detail: &str| FieldError::forbidden(&target_path.child(member), detail);
    match name {
        "object" if !has("value") && !has("averageValue") => {
            errors.push(required("averageValue", "must set either a target value or averageValue"));
        }
        "external" => match (has("value"), has("averageValue")) {
            (false, false) => errors.push(required(
                "averageValue",
                "must set either a target value for metric or a per-pod target",
            )),
            (true, true) => errors
                .push(forbidden("value", "may not set both a target value for metric and a per-pod target")),
            _ => {}
        },
        "pods" if !has("averageValue") => {
            errors.push(required("averageValue", "must specify a positive target averageValue"));
        }
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => errors.push(required(
                "averageUtilization",
                "must set either a target raw value or a target utilization",
            )),
            (true, true) => errors.push(forbidden(
                "averageValue",
                "may not set both a target raw value and a target utilization",
            )),
            _ => {}
        },
        _ => {}
    }
    errors
}

fn validate_identifier(source: &Value, path: &FieldPath) -> ErrorList {
    let path = path.child("metric").child("name");
    match source.str_at("metric.name") {
        "" => vec![FieldError::required(&path, "must specify a metric name")],
        name => field_checks::invalid_each(&path, name, validate_path_segment_name(name, false)),
    }
}

fn validate_container_resource(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = match source.str_at("name") {
        "" => vec![FieldError::required(&path.child("name"), "must specify a resource name")],
        name => validate_container_resource_name(name, &path.child("name")),
    };
    match source.str_at("container") {
        "" => errors.push(FieldError::required(&path.child("container"), "must specify a container")),
        name => {
            let messages = is_dns1123_label(name);
            errors.extend(field_checks::invalid_each(&path.child("container"), name, messages));
        }
    }
    errors
}

fn validate_target(target: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let target_type = target.str_at("type");
    if target_type.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&target_type) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), target_type, detail).of_named_type());
    }
    for name in ["value", "averageValue"] {
        let quantity = target.field(name).map(resource_list::quantity);
        if let Some(quantity) = quantity.filter(|quantity| quantity.sign() != 1) {
            errors.push(FieldError::invalid(&path.child(name), quantity.to_string(), "must be positive"));
        }
    }
    if let Some(percent) = target.i64_at("averageUtilization").filter(|percent| *percent < 1) {
        let detail = "must be greater than 0";
        errors.push(FieldError::invalid(&path.child("averageUtilization"), percent, detail));
    }
    errors
}

fn validate_scaling_rules(rules: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let window_path = path.child("stabilizationWindowSeconds");
    match rules.i64_at("stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            errors.push(FieldError::invalid(&window_path, window, "must be greater than or equal to zero"));
        }
        Some(window) if window > MAX_STABILIZATION_SECONDS => {
            let detail = format!("must be less than or equal to {MAX_STABILIZATION_SECONDS}");
            errors.push(FieldError::invalid(&window_path, window, detail));
        }
        _ => {}
    }
    if let Some(policy) = rules.at("selectPolicy").and_then(Value::as_str) {
        let policies = ["Disabled", "Max", "Min"];
        errors.extend(field_checks::supported(policy, &policies, &path.child("selectPolicy")));
    }
    let policies = rules.items_at("policies");
    let policies_path = path.child("policies");
    if policies.is_empty() {
        errors.push(FieldError::required(&policies_path, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        errors.extend(validate_policy(policy, &policies_path.index(index)));
    }
    let tolerance = rules.at("tolerance").map(resource_list::quantity);
    if let Some(tolerance) = tolerance.filter(|tolerance| tolerance.sign() < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("tolerance"), tolerance.to_string(), detail));
    }
    errors
}

fn validate_policy(policy: &Value, path: &FieldPath) -> ErrorList {
    let mut errors =
        field_checks::supported(policy.str_at("type"), &["Percent", "Pods"], &path.child("type"));
    for name in ["value", "periodSeconds"] {
        let number = policy.i64_at(name).unwrap_or_default();
        if number <= 0 {
            errors.push(FieldError::invalid(&path.child(name), number, "must be greater than zero"));
        }
        if name == "periodSeconds" && number > MAX_PERIOD_SECONDS {
            let detail = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
            errors.push(FieldError::invalid(&path.child(name), number, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(spec: Value, messages: &[&str]) {
        let mut object = json!({"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 2,
        }});
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let errors: Vec<String> = validate_spec(&object, None).iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn replicas_and_target_are_checked() {
        check(json!({}), &[]);
        check(
            json!({"minReplicas": 0, "maxReplicas": 0}),
            &[
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
            ],
        );
        check(
            json!({"scaleTargetRef": {"kind": "a/b", "name": "x"}}),
            &[
                "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
            ],
        );
        check(
            json!({"scaleTargetRef": {"kind": "ReplicationController", "apiVersion": "v1", "name": "x"}}),
            &[],
        );
    }

    #[test]
    fn metrics_have_one_source_of_their_type() {
        let supported =
            "supported values: \"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\"";
        let unsupported = format!("spec.metrics[0].type: Unsupported value: \"Gut\": {supported}");
        check(json!({"metrics": [{"type": "Gut"}]}), &[&unsupported, &unsupported]);
        let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 1}});
        let pods = json!({"metric": {"name": "x"}, "target": {"type": "AverageValue", "averageValue": "1"}});
        check(
            json!({"metrics": [{"type": "Resource", "resource": cpu, "pods": pods}]}),
            &["spec.metrics[0].pods: Forbidden: must populate the given metric source only"],
        );
        let foo = json!({"name": "foo", "container": "c", "target": {"type": "Utilization", "averageUtilization": 1}});
        check(
            json!({"metrics": [{"type": "ContainerResource", "containerResource": foo}]}),
            &[
                "spec.metrics[0].containerResource.name: Invalid value: \"foo\": must be a standard resource type or fully qualified",
                "spec.metrics[0].containerResource.name: Invalid value: \"foo\": must be a standard resource for containers",
            ],
        );
        check(
            json!({"metrics": [{"type": "Resource"}]}),
            &[
                "spec.metrics[0].resource: Required value: must populate information for the given metric source",
            ],
        );
        check(
            json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Total", "value": "-1"}}}]}),
            &[
                "spec.metrics[0].resource.target.type: Invalid value: \"Total\": must be either Utilization, Value, or AverageValue",
                "spec.metrics[0].resource.target.value: Invalid value: \"-1\": must be positive",
                "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
            ],
        );
    }

    #[test]
    fn behaviors_are_bounded() {
        check(
            json!({"behavior": {"scaleUp": {
                "stabilizationWindowSeconds": 4000, "selectPolicy": "Random", "tolerance": "-0.1",
                "policies": [{"type": "Cores", "value": 0, "periodSeconds": 2000}],
            }}}),
            &[
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 4000: must be less than or equal to 3600",
                "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Random\": supported values: \"Disabled\", \"Max\", \"Min\"",
                "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"Cores\": supported values: \"Percent\", \"Pods\"",
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 2000: must be less than or equal to 1800",
                "spec.behavior.scaleUp.tolerance: Invalid value: \"-100m\": must be greater than or equal to 0",
            ],
        );
    }
}
