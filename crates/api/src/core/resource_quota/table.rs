//! The table columns of resource quotas.

use crate::printing::{age, column, name, plain};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Request", "What is used of what may be used: objects, and what pods ask for."),
        column("Limit", "The same for the limits of pods."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(quota: &Value, now: Timestamp) -> Vec<Cell> {
    let used = quota.map_at("status.used");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in quota.map_at("status.hard") {
        let used = used.get(resource).map_or_else(|| "0".to_owned(), plain);
        let side = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        side.push(format!("{resource}: {used}/{}", plain(hard)));
    }
    vec![name(quota), requests.join(", ").into(), limits.join(", ").into(), age(quota, now)]
}
