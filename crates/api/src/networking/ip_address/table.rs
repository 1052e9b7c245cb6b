//! The table columns of IP addresses.

use crate::printing::{NONE, age, column, name};
use jiff::Timestamp;
use pintle_machinery::{GroupResource, Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("ParentRef", "Who uses the address.")]
}

/// The cells of one object.
pub(super) fn cells(address: &Value, now: Timestamp) -> Vec<Cell> {
    let parent = match address.at("spec.parentRef") {
        None => NONE.to_owned(),
        Some(parent) => {
            let resource = GroupResource::new(parent.str_at("group"), parent.str_at("resource"));
            let mut parts = vec![resource.to_string().to_lowercase()];
            parts.extend(
                [parent.str_at("namespace")].into_iter().filter(|part| !part.is_empty()).map(str::to_owned),
            );
            parts.push(parent.str_at("name").to_owned());
            parts.join("/")
        }
    };
    // As in the reference, rows have the age although there is no column for it.
    vec![name(address), parent.into(), age(address, now)]
}
