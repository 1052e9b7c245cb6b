//! The table columns of controller revisions.

use crate::printing::{NONE, age, column, integer, name};
use jiff::Timestamp;
use pintle_machinery::{GroupVersion, Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Controller", "The workload it belongs to."),
        column("Revision", "Its place in the order of revisions."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(revision: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(revision), controller(revision).into(), integer(revision, "revision"), age(revision, now)]
}

/// The controlling owner as `kind.group/name`.
fn controller(revision: &Value) -> String {
    let owners = revision.items_at("metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.bool_at("controller")) else {
        return NONE.to_owned();
    };
    let group_version = GroupVersion::parse(owner.str_at("apiVersion")).unwrap_or_default();
    let kind = group_version.with_kind(owner.str_at("kind")).group_kind();
    format!("{}/{}", kind.to_string().to_lowercase(), owner.str_at("name"))
}
