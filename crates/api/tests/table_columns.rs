//! Tests that tables have the columns that a v1.36 server prints.
//!
//! `table_columns.txt` has the columns of such a server, with a line for each resource: the path, then the name of each
//! column, with `|type` unless it is a string, and `/format` and `*priority` if it has them.

use pintle_machinery::json;
use pintle_registry::{Column, Resource};
use std::collections::BTreeMap;

#[test]
fn tables_have_the_columns_of_the_reference() {
    let expected: BTreeMap<String, String> = include_str!("table_columns.txt")
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(path, columns)| (path.to_owned(), columns.to_owned()))
        .collect();
    let printed: BTreeMap<String, String> = pintle_api::resources(&pintle_api::Config::default())
        .iter()
        .map(|resource| (path(resource), resource.table.columns()))
        .map(|(path, columns)| (path, columns.iter().map(notation).collect::<Vec<_>>().join(", ")))
        .filter(|(path, _)| expected.contains_key(path))
        .collect();
    for (path, columns) in &expected {
        assert_eq!(printed.get(path), Some(columns), "{path}");
    }
}

#[test]
fn every_row_fills_the_columns_even_of_an_empty_object() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    for resource in pintle_api::resources(&pintle_api::Config::default()) {
        let (columns, cells) = (resource.table.columns(), resource.table.cells(&json!({}), now));
        // In the reference too, the age of an IP address is a cell without a column.
        let extra = usize::from(resource.kind == "IPAddress");
        assert_eq!(cells.len(), columns.len() + extra, "{}", path(&resource));
    }
}

fn path(resource: &Resource) -> String {
    let group_version = resource.resource.group_version();
    let root = if group_version.group.is_empty() { "api" } else { "apis" };
    format!("/{root}/{group_version}/{}", resource.resource.resource)
}

fn notation(column: &Column) -> String {
    let mut text = column.name.clone();
    if column.column_type != "string" {
        text += &format!("|{}", column.column_type);
    }
    if !column.format.is_empty() {
        text += &format!("/{}", column.format);
    }
    if column.priority != 0 {
        text += &format!("*{}", column.priority);
    }
    text
}
