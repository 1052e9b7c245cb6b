//! Makes table cells from objects. As in the reference, a cell shows `<none>` for an absent value, `<unset>` for an
//! unset option and `<unknown>` for an undeterminable value.

use jiff::Timestamp;
pub(crate) use pintle_machinery::selectors::format_label_selector as label_selector;
use pintle_machinery::{Map, Value, ValueExt, meta};
use pintle_registry::{Cell, Column, TableConvertor};

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// A table convertor of functions.
pub(crate) struct Printer {
    pub(crate) columns: fn() -> Vec<Column>,
    pub(crate) cells: fn(&Value, Timestamp) -> Vec<Cell>,
    pub(crate) rank: Option<fn(&Value) -> i64>,
}

impl TableConvertor for Printer {
    fn columns(&self) -> Vec<Column> {
        (self.columns)()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell> {
        (self.cells)(object, now)
    }

    fn rank(&self) -> Option<fn(&Value) -> i64> {
        self.rank
    }
}

/// A column that is always shown.
pub(crate) fn column(name: &str, description: &str) -> Column {
    Column::string(name, 0, description)
}

/// A column that is shown only in wide output.
pub(crate) fn wide(name: &str, description: &str) -> Column {
    Column::string(name, 1, description)
}

/// A column of integers.
pub(crate) fn integers(name: &str, description: &str) -> Column {
    column(name, description).of_type("integer")
}

/// A column of booleans.
pub(crate) fn booleans(name: &str, description: &str) -> Column {
    column(name, description).of_type("boolean")
}

/// The wide columns of a workload: its containers and their images.
pub(crate) fn container_columns() -> [Column; 2] {
    [wide("Containers", "The names of the containers."), wide("Images", "The images of the containers.")]
}

/// The wide column of a selector of pods.
pub(crate) fn selector_column() -> Column {
    wide("Selector", "The labels of the pods that belong to it.")
}

/// The object's name.
pub(crate) fn name(object: &Value) -> Cell {
    text(object, "metadata.name")
}

/// The age of the object.
pub(crate) fn age(object: &Value, now: Timestamp) -> Cell {
    since(object, "metadata.creationTimestamp", now).into()
}

/// The string at a path, or "".
pub(crate) fn text(object: &Value, path: &str) -> Cell {
    object.str_at(path).into()
}

/// The string at a path, or `absent`.
pub(crate) fn text_or(object: &Value, path: &str, absent: &str) -> Cell {
    object.at(path).and_then(Value::as_str).unwrap_or(absent).into()
}

/// The integer at a path, or 0.
pub(crate) fn integer(object: &Value, path: &str) -> Cell {
    object.i64_at(path).unwrap_or_default().into()
}

/// The boolean at a path, or false.
pub(crate) fn boolean(object: &Value, path: &str) -> Cell {
    object.bool_at(path).into()
}

/// The number of items of the list at a path.
pub(crate) fn count(object: &Value, path: &str) -> Cell {
    object.items_at(path).len().into()
}

/// A number, quantity or number-or-percentage as text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => other.to_string(),
    }
}

/// The time from the instant at a path until now.
pub(crate) fn since(object: &Value, path: &str, now: Timestamp) -> String {
    meta::translate_timestamp_since(object.str_at(path), now)
}

/// Joins the strings of a list.
pub(crate) fn joined(items: &[Value], separator: &str) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(separator)
}

/// The cells of [`container_columns`], from the list of containers at a path.
pub(crate) fn container_cells(object: &Value, path: &str) -> [Cell; 2] {
    let containers = object.items_at(path);
    ["name", "image"].map(|member| {
        let members: Vec<&str> = containers.iter().map(|container| container.str_at(member)).collect();
        members.join(",").into()
    })
}

/// Labels as `key=value,…`, or `<none>`.
pub(crate) fn labels(labels: &Map) -> String {
    let pairs: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// The first three items of a list, and the number of further ones.
pub(crate) fn first_three(items: &[String]) -> String {
    let shown = items.get(..3).unwrap_or(items).join(",");
    match items.len() {
        0..=3 if shown.is_empty() => UNSET.to_owned(),
        0..=3 => shown,
        all => format!("{shown} + {} more...", all - 3),
    }
}

/// Whether an annotation has the value `true`.
pub(crate) fn is_annotated(object: &Value, annotation: &str) -> bool {
    object.map_at("metadata.annotations").get(annotation).and_then(Value::as_str) == Some("true")
}

/// The object's name, marked when it is the default of its kind.
pub(crate) fn name_or_default(object: &Value, is_default: bool) -> Cell {
    let mark = if is_default { " (default)" } else { "" };
    format!("{}{mark}", object.str_at("metadata.name")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn long_lists_are_cut_after_three() {
        let check = |items: &[&str], expected: &str| {
            let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
            assert_eq!(first_three(&items), expected);
        };
        check(&[], "<unset>");
        check(&["a", "b", "c"], "a,b,c");
        check(&["a", "b", "c", "d", "e"], "a,b,c + 2 more...");
    }

    #[test]
    fn an_object_without_a_creation_time_has_no_known_age() {
        let now = "2026-01-01T00:02:00Z".parse().unwrap();
        assert_eq!(age(&json!({}), now), json!("<unknown>"));
        assert_eq!(
            age(&json!({"metadata": {"creationTimestamp": "2026-01-01T00:01:00Z"}}), now),
            json!("60s")
        );
    }
}
