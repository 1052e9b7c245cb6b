//! The table columns of ingress classes.

use crate::printing::{NONE, age, column, is_annotated, name_or_default, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Controller", "Who serves ingresses of this class."),
        column("Parameters", "The object that configures the controller."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    let is_default = is_annotated(class, "ingressclass.kubernetes.io/is-default-class");
    let parameters = match class.at("spec.parameters") {
        None => NONE.to_owned(),
        Some(parameters) => {
            let group = parameters.at("apiGroup").and_then(Value::as_str);
            let group = group.map_or_else(String::new, |group| format!(".{group}"));
            format!("{}{group}/{}", parameters.str_at("kind"), parameters.str_at("name"))
        }
    };
    vec![
        name_or_default(class, is_default),
        text(class, "spec.controller"),
        parameters.into(),
        age(class, now),
    ]
}
