//! The table columns of storage versions.

use crate::printing::{UNSET, age, column, first_three, name, text_or};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("CommonEncodingVersion", "The version in which all servers store the resource."),
        column("StorageVersions", "The servers, with the version in which each stores the resource."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(version: &Value, now: Timestamp) -> Vec<Cell> {
    let servers = version.items_at("status.storageVersions").iter();
    let servers: Vec<String> = servers
        .map(|server| format!("{}={}", server.str_at("apiServerID"), server.str_at("encodingVersion")))
        .collect();
    vec![
        name(version),
        text_or(version, "status.commonEncodingVersion", UNSET),
        first_three(&servers).into(),
        age(version, now),
    ]
}
