//! The table columns of events, in both groups.

use crate::printing::{UNKNOWN, column, name, since, text, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(crate) fn columns() -> Vec<Column> {
    vec![
        column("Last Seen", "When it last happened."),
        column("Type", "Normal or Warning."),
        column("Reason", "Why, in a word for programs."),
        column("Object", "What it happened to."),
        wide("Subobject", "The part of the object that it happened to."),
        wide("Source", "Who says so."),
        column("Message", "What happened, for people."),
        wide("First Seen", "When it first happened."),
        wide("Count", "How often it happened."),
        Column { priority: 1, ..Column::name() },
    ]
}

pub(crate) fn cells(event: &Value, now: Timestamp) -> Vec<Cell> {
    let age = |path: &str| Some(since(event, path, now)).filter(|age| age != UNKNOWN);
    let unknown = || UNKNOWN.to_owned();
    let first = age("firstTimestamp").or_else(|| age("eventTime")).unwrap_or_else(unknown);
    let (last, count) = match event.at("series") {
        Some(series) => (
            age("series.lastObservedTime").unwrap_or_else(unknown),
            series.i64_at("count").unwrap_or_default(),
        ),
        None => (
            age("lastTimestamp").unwrap_or_else(|| first.clone()),
            event.i64_at("count").filter(|count| *count != 0).unwrap_or(1),
        ),
    };
    vec![
        last.into(),
        text(event, "type"),
        text(event, "reason"),
        object(event).into(),
        text(event, "involvedObject.fieldPath"),
        source(event).into(),
        event.str_at("message").trim().into(),
        first.into(),
        count.into(),
        name(event),
    ]
}

fn object(event: &Value) -> String {
    let kind = event.str_at("involvedObject.kind").to_lowercase();
    match event.str_at("involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let first_of = |paths: [&str; 2]| {
        paths.map(|path| event.str_at(path)).into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first_of(["source.component", "reportingComponent"]);
    match first_of(["source.host", "reportingInstance"]) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn both_kinds_of_recorders_print_alike() {
        let now = "2024-01-01T00:02:00Z".parse().unwrap();
        let old = json!({
            "metadata": {"name": "old"}, "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"},
            "reason": "Started", "message": " m\n", "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:01:00Z", "count": 3,
            "type": "Normal",
        });
        let expected = json!(["60s", "Normal", "Started", "pod/p", "f", "kubelet, n1", "m", "2m", 3, "old"]);
        assert_eq!(Value::from(cells(&old, now)), expected);
        let new = json!({
            "metadata": {"name": "new"}, "involvedObject": {"kind": "Node"}, "reportingComponent": "c",
            "eventTime": "2024-01-01T00:01:50.000000Z",
        });
        let expected = json!(["10s", "", "", "node", "", "c", "", "10s", 1, "new"]);
        assert_eq!(Value::from(cells(&new, now)), expected);
    }
}
