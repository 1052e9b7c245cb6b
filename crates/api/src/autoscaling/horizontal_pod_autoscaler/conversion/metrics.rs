//! Converts metrics to the form of the first version's alpha: flat, where the second version has groups.

use pintle_machinery::{Quantity, Value, ValueExt, json};

/// The list of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The desired metrics.
    Spec,
    /// The observed metrics.
    Status,
}

/// The value of a flat field when the grouped one is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Omitted,
    Zero,
    Empty,
}

/// A field: its flat name, its grouped path, and its value when absent.
type Field = (&'static str, &'static str, Absent);

use Absent::{Empty, Omitted, Zero};

const SPEC: [(&str, &[Field]); 5] = [
    (
        "object",
        &[
            ("target", "describedObject", Empty),
            ("metricName", "metric.name", Empty),
            ("targetValue", "target.value", Zero),
            ("selector", "metric.selector", Omitted),
            ("averageValue", "target.averageValue", Omitted),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", Empty),
            ("targetAverageValue", "target.averageValue", Zero),
            ("selector", "metric.selector", Omitted),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", Empty),
            ("targetAverageUtilization", "target.averageUtilization", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", Empty),
            ("targetAverageUtilization", "target.averageUtilization", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
            ("container", "container", Empty),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", Empty),
            ("metricSelector", "metric.selector", Omitted),
            ("targetValue", "target.value", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
    ),
];

const STATUS: [(&str, &[Field]); 5] = [
    (
        "object",
        &[
            ("target", "describedObject", Empty),
            ("metricName", "metric.name", Empty),
            ("currentValue", "current.value", Zero),
            ("selector", "metric.selector", Omitted),
            ("averageValue", "current.averageValue", Omitted),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", Empty),
            ("currentAverageValue", "current.averageValue", Zero),
            ("selector", "metric.selector", Omitted),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", Empty),
            ("currentAverageUtilization", "current.averageUtilization", Omitted),
            ("currentAverageValue", "current.averageValue", Zero),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", Empty),
            ("currentAverageUtilization", "current.averageUtilization", Omitted),
            ("currentAverageValue", "current.averageValue", Zero),
            ("container", "container", Empty),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", Empty),
            ("metricSelector", "metric.selector", Omitted),
            ("currentValue", "current.value", Zero),
            ("currentAverageValue", "current.averageValue", Omitted),
        ],
    ),
];

impl Shape {
    fn sources(self) -> &'static [(&'static str, &'static [Field])] {
        match self {
            Shape::Spec => &SPEC,
            Shape::Status => &STATUS,
        }
    }
}

/// Formats metrics for the annotation, with members in Go's order.
pub(super) fn to_v1_text(metrics: &[Value], shape: Shape) -> String {
    let metric = |metric: &Value| {
        let sources = shape.sources().iter().filter_map(|(name, fields)| {
            let source = metric.field(name)?;
            Some((*name, ordered(fields.iter().filter_map(|field| flat_member(source, *field)))))
        });
        let metric_type = ("type", Value::from(metric.str_at("type")).to_string());
        ordered(std::iter::once(metric_type).chain(sources))
    };
    let texts: Vec<String> = metrics.iter().map(metric).collect();
    format!("[{}]", texts.join(","))
}

fn flat_member(source: &Value, (name, path, absent): Field) -> Option<(&'static str, String)> {
    let names: &[(&str, Absent)] = match path {
        "describedObject" => &[("kind", Empty), ("name", Empty), ("apiVersion", Omitted)],
        "metric.selector" => &[("matchLabels", Omitted), ("matchExpressions", Omitted)],
        _ => &[],
    };
    let member = |value: &Value, (name, absent): (&'static str, Absent)| match value.field(name) {
        Some(value) => Some((name, value.to_string())),
        None => (absent == Empty).then(|| (name, "\"\"".to_owned())),
    };
    let text = match (source.at(path), absent) {
        (Some(value), _) if names.is_empty() => value.to_string(),
        (Some(value), _) => ordered(names.iter().filter_map(|name| member(value, *name))),
        (None, Omitted) => return None,
        (None, Zero) => "\"0\"".to_owned(),
        (None, Empty) if names.is_empty() => "\"\"".to_owned(),
        (None, Empty) => r#"{"kind":"","name":""}"#.to_owned(),
    };
    Some((name, text))
}

/// Parses metrics of the annotation.
pub(super) fn from_v1(metrics: &Value, shape: Shape) -> Vec<Value> {
    let metrics = metrics.as_array().map(Vec::as_slice).unwrap_or_default();
    metrics.iter().map(|metric| grouped(metric, shape)).collect()
}

fn grouped(metric: &Value, shape: Shape) -> Value {
    let mut converted = json!({"type": metric.str_at("type")});
    for (name, fields) in shape.sources() {
        let Some(flat) = metric.field(name) else { continue };
        let mut source = json!({});
        for (flat_name, path, _) in *fields {
            if let Some(value) = flat.field(flat_name) {
                source.set(path, value.clone());
            }
        }
        if shape == Shape::Spec {
            set_target_type(&mut source, name);
        }
        converted.set(name, source);
    }
    converted
}

/// Derives the type of the target, which the flat form lacks, from the fields that are set.
fn set_target_type(source: &mut Value, name: &str) {
    let has = |member: &str| source.at(&format!("target.{member}")).is_some();
    let target_type = match name {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    let is_zero = |value: &Value| Quantity::from_tree(value).is_ok_and(|value| value.is_zero());
    if name == "object" && target_type == "AverageValue" && source.at("target.value").is_some_and(is_zero) {
        source.remove_at("target.value");
    }
    source.set("target.type", target_type);
}

/// Formats an object with its members in this order.
pub(super) fn ordered<'a>(members: impl Iterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> = members.map(|(name, text)| format!("\"{name}\":{text}")).collect();
    format!("{{{}}}", members.join(","))
}
