//! Writes tables (<https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>).

use super::{
    include_object::IncludeObject,
    meta_types::{META_V1, list_metadata, partial},
};
use crate::registry::VersionedResource;
use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_registry::Column;
use std::borrow::Cow;

/// The form of a table.
#[derive(Clone, Copy)]
pub(in super::super) struct TableForm<'a> {
    /// The resource of the rows.
    pub(super) resource: &'a VersionedResource,
    /// The version of `meta.k8s.io`.
    pub(super) version: &'a str,
    /// The part of the object in a row.
    pub(super) include_object: IncludeObject,
    /// The time that ages are relative to.
    pub(super) now: Timestamp,
}

impl TableForm<'_> {
    /// The bytes before the rows; a watch sends column definitions in its first table only.
    pub(in super::super) fn head(&self, with_columns: bool, metadata: &Value) -> String {
        let columns = match with_columns {
            false => "null".to_owned(),
            true => {
                let columns = self.resource.resource.table.columns();
                format!("[{}]", columns.iter().map(column).collect::<Vec<_>>().join(","))
            }
        };
        let version = self.version;
        format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{},\"columnDefinitions\":{columns},\"rows\":[",
            list_metadata(metadata)
        )
    }

    /// Writes the row of one object of the storage kind.
    pub(in super::super) fn row(&self, tree: &Value, out: &mut BytesMut) {
        let table = &self.resource.resource.table;
        let cells = Value::Array(table.cells(tree, self.now));
        out.put_slice(b"{\"cells\":");
        out.put_slice(&json::encode_any(&cells));
        let conditions = table.row_conditions(tree);
        if !conditions.is_empty() {
            out.put_slice(b",\"conditions\":");
            let conditions: Vec<_> = conditions.iter().map(condition).collect();
            out.put_slice(format!("[{}]", conditions.join(",")).as_bytes());
        }
        let object: Cow<'_, [u8]> = match self.include_object {
            // Clients recognize the end of the initial events by the metadata.
            IncludeObject::None if ends_initial_events(tree) => self.metadata_of(tree).into(),
            IncludeObject::None => b"null".as_slice().into(),
            IncludeObject::Metadata => self.metadata_of(tree).into(),
            IncludeObject::Object => {
                json::encode(&self.resource.from_storage(tree.clone()), self.resource.schema.get()).into()
            }
        };
        out.put_slice(b",\"object\":");
        out.put_slice(&object);
        out.put_u8(b'}');
    }

    fn metadata_of(&self, tree: &Value) -> Vec<u8> {
        json::encode(&partial(&self.resource.resource, tree, self.version), META_V1.partial)
    }

    /// A whole table of one row.
    pub(in super::super) fn of_one(&self, with_columns: bool, metadata: &Value, tree: &Value) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_slice(self.head(with_columns, metadata).as_bytes());
        self.row(tree, &mut bytes);
        bytes.put_slice(TABLE_FOOT);
        bytes.freeze()
    }
}

/// The annotation of the bookmark that ends the initial events of a watch.
pub(in super::super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

fn ends_initial_events(tree: &Value) -> bool {
    let annotation =
        tree.at("metadata.annotations").and_then(|annotations| annotations.get(INITIAL_EVENTS_END));
    annotation.and_then(Value::as_str) == Some("true")
}

/// The bytes after the rows.
pub(in super::super) const TABLE_FOOT: &[u8] = b"]}\n";

/// A column definition, in Go's field order.
fn column(column: &Column) -> String {
    format!(
        "{{\"name\":{},\"type\":{},\"format\":{},\"description\":{},\"priority\":{}}}",
        text(&column.name.as_str().into()),
        text(&column.column_type.as_str().into()),
        text(&column.format.as_str().into()),
        text(&column.description.as_str().into()),
        column.priority
    )
}

/// A row condition, in Go's field order.
fn condition(condition: &Value) -> String {
    let members = ["type", "status", "reason", "message"]
        .iter()
        .filter_map(|name| condition.get(*name).map(|value| format!("\"{name}\":{}", text(value))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A value as JSON with Go's HTML escapes.
fn text(value: &Value) -> String {
    String::from_utf8(json::encode_any(value)).unwrap_or_default()
}
