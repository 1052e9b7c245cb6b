//! The table columns of endpoint slices.

use crate::printing::{age, column, first_three, name, plain, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("AddressType", "What the addresses are."),
        column("Ports", "The ports of every endpoint."),
        column("Endpoints", "The addresses."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(slice: &Value, now: Timestamp) -> Vec<Cell> {
    let ports: Vec<String> = slice.items_at("ports").iter().map(port).collect();
    let endpoints = slice.items_at("endpoints").iter();
    let addresses: Vec<String> =
        endpoints.flat_map(|endpoint| endpoint.items_at("addresses")).map(plain).collect();
    vec![
        name(slice),
        text(slice, "addressType"),
        first_three(&ports).into(),
        first_three(&addresses).into(),
        age(slice, now),
    ]
}

/// A port by number, otherwise by name; a port with neither means all ports.
fn port(port: &Value) -> String {
    port.field("port").or_else(|| port.field("name")).map_or_else(|| "*".to_owned(), plain)
}
