//! The table columns of component statuses.

use crate::printing::{column, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Status", "Whether the component is well."),
        column("Message", "What the component says of itself."),
        column("Error", "Why the component could not be asked."),
    ]
}

/// The cells of one object.
pub(super) fn cells(status: &Value, _now: Timestamp) -> Vec<Cell> {
    let healthy =
        status.items_at("conditions").iter().find(|condition| condition.str_at("type") == "Healthy");
    let condition = healthy.unwrap_or(&Value::Null);
    let state = match healthy.map(|condition| condition.str_at("status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    vec![name(status), state.into(), text(condition, "message"), text(condition, "error")]
}
