//! The table columns of deployments.

use crate::printing::{
    age, column, container_cells, container_columns, integer, label_selector, name, selector_column,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        column("Ready", "How many replicas are ready, of how many that are wanted."),
        column("Up-to-date", "How many replicas are of the current template."),
        column("Available", "How many replicas have been ready for long enough."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(object, "spec.template.spec.containers");
    let number = |path: &str| object.i64_at(path).unwrap_or_default();
    vec![
        name(object),
        format!("{}/{}", number("status.readyReplicas"), number("spec.replicas")).into(),
        integer(object, "status.updatedReplicas"),
        integer(object, "status.availableReplicas"),
        age(object, now),
        containers,
        images,
        selector(object).into(),
    ]
}

/// Empty without a selector, unlike those of other kinds: only bookmarks have none.
fn selector(object: &Value) -> String {
    match object.at("spec.selector") {
        None | Some(Value::Null) => String::new(),
        selector => label_selector(selector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_bookmark_has_no_selector() {
        let check = |object: Value, expected: &str| {
            assert_eq!(cells(&object, Timestamp::UNIX_EPOCH).last(), Some(&expected.into()), "{object}");
        };
        check(json!({"metadata": {"resourceVersion": "5"}}), "");
        check(json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}), "a=b");
    }
}
