//! The table columns of horizontal pod autoscalers.

use crate::printing::{NONE, UNKNOWN, UNSET, age, column, integer, name, plain};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Reference", "What it scales."),
        column("Targets", "What each metric is and should be."),
        column("MinPods", "The fewest pods it may leave."),
        column("MaxPods", "The most pods it may make."),
        column("Replicas", "How many pods there are."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(autoscaler: &Value, now: Timestamp) -> Vec<Cell> {
    let target = autoscaler.at("spec.scaleTargetRef").unwrap_or(&Value::Null);
    vec![
        name(autoscaler),
        format!("{}/{}", target.str_at("kind"), target.str_at("name")).into(),
        metrics(autoscaler).into(),
        autoscaler.at("spec.minReplicas").map_or_else(|| UNSET.to_owned(), plain).into(),
        integer(autoscaler, "spec.maxReplicas"),
        integer(autoscaler, "status.currentReplicas"),
        age(autoscaler, now),
    ]
}

/// The text for a missing quantity.
const NIL: &str = "<nil>";

/// The first two metrics, and the number of further ones.
fn metrics(autoscaler: &Value) -> String {
    let specs = autoscaler.items_at("spec.metrics");
    let statuses = autoscaler.items_at("status.currentMetrics");
    let shown: Vec<String> = specs
        .iter()
        .enumerate()
        .take(2)
        .map(|(index, spec)| metric(spec, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    match specs.len() {
        0 => NONE.to_owned(),
        1 | 2 => shown.join(", "),
        all => format!("{} + {} more...", shown.join(", "), all - 2),
    }
}

/// Formats a metric as `current/target`. Its description is in the member named for its type; the target selects an
/// average, a total, or a percentage of the pods' requests.
fn metric(spec: &Value, status: &Value) -> String {
    let (member, of_resource) = match spec.str_at("type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let description = spec.field(member).unwrap_or(&Value::Null);
    let target = description.field("target").unwrap_or(&Value::Null);
    let current = status.field(member).and_then(|status| status.field("current"));
    // A metric reported without a value shows an empty value rather than unknown.
    let value = |name: &str, absent: &str| {
        let value = current.map(|current| current.field(name).map_or_else(|| absent.to_owned(), plain));
        value.unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let wanted = |name: &str| target.field(name).map(plain);
    let percentage = |object: Option<&Value>| {
        object.and_then(|object| object.i64_at("averageUtilization")).map(|percent| format!("{percent}%"))
    };
    let text = match wanted("averageValue") {
        Some(average) if of_resource || member == "pods" => {
            format!("{}/{average}", value("averageValue", NIL))
        }
        Some(average) => format!("{}/{average} (avg)", value("averageValue", UNKNOWN)),
        None if of_resource => {
            let current = percentage(current).unwrap_or_else(|| UNKNOWN.to_owned());
            format!("{current}/{}", percentage(Some(target)).unwrap_or_else(|| "<auto>".to_owned()))
        }
        None => format!("{}/{}", value("value", NIL), wanted("value").unwrap_or_else(|| NIL.to_owned())),
    };
    if of_resource { format!("{}: {text}", description.str_at("name")) } else { text }
}
