//! The form of a schema that evaluation uses to convert the parts of an object.

use std::sync::Arc;

use pintle_cel::{ListType as CelListType, Schema, SchemaKind};

use super::decl_type::declares_meta;
use crate::structural::arena::Arena;
use crate::structural::node::{Constraint, Flags, JsonType, ListType, Node};
use crate::structural::object_meta::is_meta_field;

/// The view of a schema and its descendants.
#[derive(Debug)]
pub(super) struct View {
    kind: SchemaKind,
    nullable: bool,
    list: List,
    /// Sorted by name.
    properties: Box<[(Box<str>, Arc<View>)]>,
    /// The view of a list's items or a map's values.
    element: Option<Arc<View>>,
}

#[derive(Debug)]
enum List {
    Atomic,
    Set,
    Map(Box<[String]>),
}

impl View {
    pub(super) fn of(schema: &Arena, node: &Node, resource: bool) -> View {
        let kind = kind(schema, node, resource);
        let list = match node.list_type {
            ListType::Atomic => List::Atomic,
            ListType::Set => List::Set,
            ListType::Map => List::Map(schema.strs(node.list_map_keys).map(str::to_owned).collect()),
        };
        let below = |node: &Node| Arc::new(View::of(schema, node, node.flags.has(Flags::EMBEDDED_RESOURCE)));
        let mut properties = Vec::new();
        let replaces_meta = resource && !declares_meta(schema, node);
        if kind == SchemaKind::Object {
            for (name, property) in schema.properties(node) {
                if !(replaces_meta && is_meta_field(name)) {
                    properties.push((name.into(), below(property)));
                }
            }
            if replaces_meta {
                let text = Arc::new(View::plain(SchemaKind::String, Vec::new()));
                let names = ["generateName", "name"].map(|name| (name.into(), text.clone()));
                let metadata = Arc::new(View::plain(SchemaKind::Object, names.to_vec()));
                let meta = [("apiVersion", text.clone()), ("kind", text), ("metadata", metadata)];
                properties.extend(meta.map(|(name, view)| (name.into(), view)));
                properties.sort_by(|(one, _): &(Box<str>, _), (other, _)| one.cmp(other));
            }
        }
        let element = match kind {
            SchemaKind::Array => schema.items(node).map(below),
            SchemaKind::Map => schema.additional(node).map(below),
            _ => None,
        };
        let nullable = node.flags.has(Flags::NULLABLE);
        View { kind, nullable, list, properties: properties.into_boxed_slice(), element }
    }

    fn plain(kind: SchemaKind, properties: Vec<(Box<str>, Arc<View>)>) -> View {
        let properties = properties.into_boxed_slice();
        View { kind, nullable: false, list: List::Atomic, properties, element: None }
    }

    /// The view of a member by its declared name.
    pub(super) fn member(&self, name: &str) -> Option<&Arc<View>> {
        let at = self.properties.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        self.properties.get(at).map(|(_, view)| view)
    }

    /// The view of items or of a map's values.
    pub(super) fn element(&self) -> Option<&Arc<View>> {
        self.element.as_ref()
    }
}

fn kind(schema: &Arena, node: &Node, resource: bool) -> SchemaKind {
    if node.flags.has(Flags::INT_OR_STRING) {
        return SchemaKind::IntOrString;
    }
    match node.ty {
        Some(JsonType::Object) => {
            let declared = resource || node.flags.has(Flags::EMBEDDED_RESOURCE) || node.properties.len > 0;
            match schema.additional(node) {
                Some(_) if !declared => SchemaKind::Map,
                _ => SchemaKind::Object,
            }
        }
        Some(JsonType::Array) => SchemaKind::Array,
        Some(JsonType::String) => {
            let format = schema.constraints(node).iter().find_map(|constraint| match constraint {
                Constraint::Format(name) => Some(schema.str(*name)),
                _ => None,
            });
            match format {
                Some("duration") => SchemaKind::Duration,
                Some("date") => SchemaKind::Date,
                Some("date-time") => SchemaKind::DateTime,
                Some("byte") => SchemaKind::Byte,
                _ => SchemaKind::String,
            }
        }
        Some(JsonType::Number) => SchemaKind::Number,
        Some(JsonType::Integer) => SchemaKind::Integer,
        Some(JsonType::Boolean) => SchemaKind::Boolean,
        None | Some(JsonType::Unknown(_)) => SchemaKind::Unknown,
    }
}

impl Schema for View {
    fn kind(&self) -> SchemaKind {
        self.kind
    }

    fn nullable(&self) -> bool {
        self.nullable
    }

    fn property(&self, name: &str) -> Option<&dyn Schema> {
        let found = match self.kind {
            SchemaKind::Map => self.element()?,
            _ => self.member(name)?,
        };
        Some(&**found)
    }

    fn items(&self) -> Option<&dyn Schema> {
        let element = self.element()?;
        Some(&**element)
    }

    fn list_type(&self) -> CelListType<'_> {
        match &self.list {
            List::Atomic => CelListType::Atomic,
            List::Set => CelListType::Set,
            List::Map(keys) => CelListType::Map(keys),
        }
    }
}
