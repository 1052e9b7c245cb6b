//! How cells of tables are made from objects. A cell shows `<none>` for what is not there, `<unset>` for what nobody
//! chose and `<unknown>` for what cannot be told, as clients have always seen it.

use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{Map, Value, ValueExt, meta};
use pintle_registry::{Cell, Column, TableConvertor};

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// A table by two functions.
pub(crate) struct Printer {
    pub(crate) columns: fn() -> Vec<Column>,
    pub(crate) cells: fn(&Value, Timestamp) -> Vec<Cell>,
}

impl TableConvertor for Printer {
    fn columns(&self) -> Vec<Column> {
        (self.columns)()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell> {
        (self.cells)(object, now)
    }
}

/// A column that every form shows.
pub(crate) fn column(name: &str, description: &str) -> Column {
    Column::string(name, 0, description)
}

/// A column that only the wide form shows.
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

/// How old the object is.
pub(crate) fn age(object: &Value, now: Timestamp) -> Cell {
    since(object, "metadata.creationTimestamp", now).into()
}

/// The string at a path, or "".
pub(crate) fn text(object: &Value, path: &str) -> Cell {
    object.str_at(path).into()
}

/// The string at a path, or something else when it is absent.
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

/// How many items the list at a path has.
pub(crate) fn count(object: &Value, path: &str) -> Cell {
    object.items_at(path).len().into()
}

/// A number, quantity or number-or-percentage as text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The time from the instant at a path until now.
pub(crate) fn since(object: &Value, path: &str, now: Timestamp) -> String {
    match meta::parse_time(object.str_at(path)) {
        Some(then) => human_duration(now.duration_since(then)),
        None => UNKNOWN.to_owned(),
    }
}

/// A duration in the two units that matter, as all Kubernetes clients show it.
pub(crate) fn human_duration(duration: SignedDuration) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let seconds = duration.as_secs();
    let two = |(big, big_name): (i64, char), (small, small_name): (i64, char)| {
        let rest = seconds % big / small;
        let rest = if rest == 0 { String::new() } else { format!("{rest}{small_name}") };
        format!("{}{big_name}{rest}", seconds / big)
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        // Clocks that differ a little are not worth a word.
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two((MINUTE, 'm'), (1, 's')),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two((HOUR, 'h'), (MINUTE, 'm')),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two((DAY, 'd'), (HOUR, 'h')),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two((YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
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

/// A label selector in the syntax of `labelSelector`; `<none>` when it is empty or absent, `<error>` when it has an
/// operator that does not exist.
pub(crate) fn label_selector(selector: Option<&Value>) -> String {
    let Some(requirements) = selector.map_or(Some(Vec::new()), requirements) else {
        return "<error>".to_owned();
    };
    if requirements.is_empty() { NONE.to_owned() } else { requirements.join(",") }
}

/// The requirements of a label selector, by key. `None` when one cannot be written.
fn requirements(selector: &Value) -> Option<Vec<String>> {
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.map_at("matchLabels") {
        requirements.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.items_at("matchExpressions") {
        let key = expression.str_at("key");
        let mut values: Vec<&str> = expression.items_at("values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        values.dedup();
        let text = match expression.str_at("operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key, text));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Some(requirements.into_iter().map(|(_, text)| text).collect())
}

/// The first three of a list, and how many more there are.
pub(crate) fn first_three(items: &[String]) -> String {
    let shown = items.get(..3).unwrap_or(items).join(",");
    match items.len() {
        0..=3 if shown.is_empty() => UNSET.to_owned(),
        0..=3 => shown,
        all => format!("{shown} + {} more...", all - 3),
    }
}

/// Whether an annotation says `true`.
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
    use serde_json::json;

    #[test]
    fn label_selectors_print_sorted_by_key() {
        let check = |selector: Value, expected: &str| assert_eq!(label_selector(Some(&selector)), expected);
        check(json!({}), "<none>");
        check(json!({"matchLabels": {"b": "1", "a": ""}}), "a=,b=1");
        check(
            json!({
                "matchLabels": {"m": "1"},
                "matchExpressions": [
                    {"key": "z", "operator": "NotIn", "values": ["q", "p", "q"]},
                    {"key": "a", "operator": "DoesNotExist"},
                    {"key": "n", "operator": "Exists"},
                    {"key": "b", "operator": "In", "values": ["x"]}
                ]
            }),
            "!a,b in (x),m=1,n,z notin (p,q)",
        );
        check(json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "<error>");
        assert_eq!(label_selector(None), "<none>");
    }

    #[test]
    fn durations_print_in_two_units() {
        let check = |seconds: i64, expected: &str| {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected);
        };
        let (hour, day) = (3600, 86400);
        check(-2, "<invalid>");
        check(-1, "0s");
        check(119, "119s");
        check(120, "2m");
        check(599, "9m59s");
        check(10739, "178m");
        check(3 * hour, "3h");
        check(8 * hour - 1, "7h59m");
        check(47 * hour, "47h");
        check(2 * day + hour, "2d1h");
        check(8 * day, "8d");
        check(729 * day, "729d");
        check(731 * day, "2y1d");
        check(9 * 365 * day, "9y");
    }

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
