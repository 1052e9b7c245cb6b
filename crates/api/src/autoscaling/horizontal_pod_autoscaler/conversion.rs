//! Converts autoscalers between the two versions. The first version has only the CPU utilization; the other fields of
//! the second are kept in annotations of the first, in the form of its former alpha, so that a round trip loses
//! nothing.

mod metrics;

use super::strategy::set_default_metrics;
use metrics::{Shape, from_v1, ordered, to_v1_text};
use pintle_machinery::{Value, ValueExt, json, text::escape_html};
use pintle_registry::Conversion;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const TOLERANCES: [&str; 2] = [
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The fields of scaling rules with their names in the annotation, which are Go's.
const RULE_FIELDS: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY_FIELDS: [(&str, &str); 3] =
    [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];
/// The fields of conditions in the annotation, with the text of an absent one that is not omitted.
const CONDITION_FIELDS: [(&str, Option<&str>); 5] = [
    ("type", Some("\"\"")),
    ("status", Some("\"\"")),
    ("lastTransitionTime", Some("null")),
    ("reason", None),
    ("message", None),
];

/// The conversion of `autoscaling/v1` autoscalers.
pub(super) const CONVERSION: Conversion = Conversion { to_storage: to_v2, from_storage: from_v2 };

/// A second-version autoscaler from a first-version one.
fn to_v2(mut autoscaler: Value) -> Value {
    autoscaler.set("apiVersion", "autoscaling/v2");
    let target = autoscaler.at_mut("spec").and_then(|spec| spec.remove_at("targetCPUUtilizationPercentage"));
    let mut metrics =
        annotated(&autoscaler, METRICS).map(|metrics| from_v1(&metrics, Shape::Spec)).unwrap_or_default();
    if let Some(target) = target.filter(|target| !target.is_null()) {
        metrics.push(json!({
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}},
        }));
    }
    match metrics.is_empty() {
        // The first version has no default of its own and relies on this one.
        true => set_default_metrics(&mut autoscaler),
        false => autoscaler.set("spec.metrics", metrics),
    }
    if let Some(mut behavior) = annotated(&autoscaler, BEHAVIOR).map(|text| read_behavior(&text))
        && !behavior.as_object().is_none_or(pintle_machinery::Map::is_empty)
    {
        // This version has no defaults for a behavior: validation requires its policies.
        for direction in ["scaleUp", "scaleDown"] {
            if behavior.at(direction).is_some() {
                behavior.set_default(&format!("{direction}.policies"), json!([]));
            }
        }
        autoscaler.set("spec.behavior", behavior);
    }
    let current =
        autoscaler.at_mut("status").and_then(|status| status.remove_at("currentCPUUtilizationPercentage"));
    match annotated(&autoscaler, CURRENT_METRICS) {
        Some(metrics) => autoscaler.set("status.currentMetrics", from_v1(&metrics, Shape::Status)),
        None => {
            if let Some(current) = current.filter(|current| !current.is_null()) {
                let resource = json!({"name": "cpu", "current": {"averageUtilization": current}});
                autoscaler.set("status.currentMetrics", json!([{"type": "Resource", "resource": resource}]));
            }
        }
    }
    if let Some(conditions) = annotated(&autoscaler, CONDITIONS) {
        autoscaler.set("status.conditions", conditions);
    }
    drop_annotations(&mut autoscaler);
    autoscaler
}

/// A first-version autoscaler from a second-version one.
fn from_v2(mut autoscaler: Value) -> Value {
    drop_annotations(&mut autoscaler);
    autoscaler.set("apiVersion", "autoscaling/v1");
    let mut annotations: Vec<(&str, String)> = Vec::new();
    let metrics = take_list(&mut autoscaler, "spec.metrics");
    let (cpu, others): (Vec<Value>, Vec<Value>) = metrics.into_iter().partition(is_cpu_utilization);
    if let Some(target) = cpu.first().and_then(|metric| metric.at("resource.target.averageUtilization")) {
        autoscaler.set("spec.targetCPUUtilizationPercentage", target.clone());
    }
    if !others.is_empty() {
        annotations.push((METRICS, to_v1_text(&others, Shape::Spec)));
    }
    let current = take_list(&mut autoscaler, "status.currentMetrics");
    let used = current.iter().rev().filter(|metric| is_cpu(metric));
    if let Some(used) = used.filter_map(|metric| metric.at("resource.current.averageUtilization")).next() {
        autoscaler.set("status.currentCPUUtilizationPercentage", used.clone());
    }
    if !current.is_empty() {
        annotations.push((CURRENT_METRICS, to_v1_text(&current, Shape::Status)));
    }
    if let Some(behavior) = autoscaler.remove_at("spec.behavior").filter(Value::is_object) {
        annotations.push((BEHAVIOR, behavior_text(&behavior)));
    }
    let conditions = take_list(&mut autoscaler, "status.conditions");
    if !conditions.is_empty() {
        let texts: Vec<String> = conditions.iter().map(condition_text).collect();
        annotations.push((CONDITIONS, format!("[{}]", texts.join(","))));
    }
    if !annotations.is_empty() {
        let own = autoscaler.object_at_mut("metadata.annotations");
        own.extend(annotations.into_iter().map(|(name, text)| (name.to_owned(), escape_html(&text).into())));
    }
    autoscaler
}

fn annotated(autoscaler: &Value, annotation: &str) -> Option<Value> {
    let text = autoscaler.map_at("metadata.annotations").get(annotation)?.as_str()?;
    serde_json::from_str(text).ok()
}

fn drop_annotations(autoscaler: &mut Value) {
    let Some(Value::Object(annotations)) = autoscaler.at_mut("metadata.annotations") else {
        return;
    };
    for annotation in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR].iter().chain(&TOLERANCES) {
        annotations.remove(annotation);
    }
    if annotations.is_empty() {
        autoscaler.remove_at("metadata.annotations");
    }
}

fn take_list(autoscaler: &mut Value, path: &str) -> Vec<Value> {
    match autoscaler.remove_at(path) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.str_at("type") == "Resource" && metric.str_at("resource.name") == "cpu"
}

fn is_cpu_utilization(metric: &Value) -> bool {
    is_cpu(metric) && metric.at("resource.target.averageUtilization").is_some()
}

fn condition_text(condition: &Value) -> String {
    ordered(CONDITION_FIELDS.into_iter().filter_map(|(name, absent)| {
        Some((name, condition.field(name).map(Value::to_string).or(absent.map(str::to_owned))?))
    }))
}

fn behavior_text(behavior: &Value) -> String {
    let policy = |policy: &Value| -> String {
        let member = |path: &str| policy.field(path).cloned().unwrap_or_else(|| 0.into());
        ordered(POLICY_FIELDS.into_iter().map(|(name, path)| (name, member(path).to_string())))
    };
    let rules = |name: &str| -> String {
        let Some(rules) = behavior.field(name) else {
            return "null".to_owned();
        };
        ordered(RULE_FIELDS.into_iter().map(|(name, path)| match rules.field(path) {
            Some(Value::Array(policies)) => {
                let policies: Vec<String> = policies.iter().map(policy).collect();
                (name, format!("[{}]", policies.join(",")))
            }
            value => (name, value.unwrap_or(&Value::Null).to_string()),
        }))
    };
    ordered([("ScaleUp", rules("scaleUp")), ("ScaleDown", rules("scaleDown"))].into_iter())
}

fn read_behavior(text: &Value) -> Value {
    let mut behavior = json!({});
    for name in ["scaleUp", "scaleDown"] {
        let Some(text) = member(text, name).filter(|rules| rules.is_object()) else { continue };
        let mut rules = json!({});
        for (_, path) in RULE_FIELDS {
            match member(text, path) {
                Some(Value::Array(policies)) => {
                    let policies = policies.iter().map(|text| {
                        let fields = POLICY_FIELDS.into_iter();
                        fields
                            .filter_map(|(_, path)| Some((path.to_owned(), member(text, path)?.clone())))
                            .collect()
                    });
                    rules.set(path, Value::Array(policies.map(Value::Object).collect()));
                }
                Some(value) => rules.set(path, value.clone()),
                None => {}
            }
        }
        behavior.set(name, rules);
    }
    behavior
}

/// A member by name, case-insensitively, as Go decodes it.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let mut members = object.as_object()?.iter();
    let (_, value) = members.find(|(own, value)| own.eq_ignore_ascii_case(name) && !value.is_null())?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_loses_nothing() {
        let v2 = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h", "annotations": {"own": "x"}},
            "spec": {
                "minReplicas": 1, "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": [
                    {"type": "Pods", "pods": {
                        "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
                        "target": {"type": "AverageValue", "averageValue": "1k"},
                    }},
                    {"type": "Object", "object": {
                        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                        "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"},
                    }},
                    {"type": "Resource", "resource": {
                        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70},
                    }},
                ],
                "behavior": {"scaleDown": {
                    "selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                }},
            },
            "status": {
                "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r"}],
                "currentMetrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "current": {"averageUtilization": 5, "averageValue": "1m"},
                }}],
            },
        });
        let v1 = from_v2(v2.clone());
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], json!(70));
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], json!(5));
        let annotation = |name: &str| v1["metadata"]["annotations"][name].as_str().unwrap_or_default();
        assert_eq!(
            annotation(METRICS),
            r#"[{"type":"Pods","pods":{"metricName":"packets","targetAverageValue":"1k","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"hits","targetValue":"10"}}]"#
        );
        assert_eq!(
            annotation(BEHAVIOR),
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}}"#
        );
        assert_eq!(
            annotation(CONDITIONS),
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":null,"reason":"r"}]"#
        );
        let mut back = to_v2(v1);
        back["status"]["conditions"][0].as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(back, v2);
    }

    #[test]
    fn annotations_have_empty_texts_that_go_writes() {
        let v1 = from_v2(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"metrics": [{"object": {"describedObject": {"apiVersion": "v1"}}}]},
            "status": {"conditions": [{"message": "m"}]},
        }));
        let annotation = |name: &str| v1["metadata"]["annotations"][name].as_str().unwrap_or_default();
        assert_eq!(
            annotation(CONDITIONS),
            r#"[{"type":"","status":"","lastTransitionTime":null,"message":"m"}]"#
        );
        assert_eq!(
            annotation(METRICS),
            r#"[{"type":"","object":{"target":{"kind":"","name":"","apiVersion":"v1"},"metricName":"","targetValue":"0"}}]"#
        );
    }

    #[test]
    fn a_plain_first_version_stays_plain() {
        let v1 = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
        });
        assert_eq!(from_v2(to_v2(v1.clone())), v1);
    }
}
