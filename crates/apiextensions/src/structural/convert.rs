//! Converts a structural schema to the schema type of built-in kinds.
//!
//! A value that the node's type does not allow has no structure, as in pruning. A string field that is given an object
//! therefore loses the object's members, and validation then reports the type.

use std::collections::HashSet;

use pintle_schema::{
    FieldSpec, ListType as SchemaListType, MapType, NodeId, Schema, SchemaBuilder, StructSpec, Structural,
    Type,
};

use super::arena::Arena;
use super::node::{Additional, Constraint, Flags, JsonType, ListType, Node};
use super::object_meta::{self, is_meta_field};

pub(super) fn convert(schema: &Arena) -> Schema {
    let mut converter = Converter { schema, builder: SchemaBuilder::new(), meta: None };
    let root = converter.object(schema.root_node(), true, false);
    converter.structural(root, schema.root_node(), false, None);
    converter.builder.finish(root)
}

struct Converter<'s> {
    schema: &'s Arena,
    builder: SchemaBuilder,
    /// The nodes of `apiVersion` and `kind`, which share one, and of `metadata`.
    meta: Option<(NodeId, NodeId)>,
}

impl Converter<'_> {
    /// `preserved` marks an item of a list that preserves unknown fields.
    fn value(&mut self, node: &Node, preserved: bool, own_default: bool) -> NodeId {
        let schema = self.schema;
        let preserves = preserved || node.flags.has(Flags::PRESERVE_UNKNOWN);
        let embedded = node.flags.has(Flags::EMBEDDED_RESOURCE);
        let structured = node.properties.len > 0 || embedded;
        let id = match node.ty {
            Some(JsonType::Array) => {
                let item = match schema.items(node) {
                    Some(item) => self.value(item, preserves, true),
                    None if preserves => self.builder.scalar(Type::Any),
                    None => self.nothing(),
                };
                let keys: Vec<&str> = schema.strs(node.list_map_keys).collect();
                let list_type = match node.list_type {
                    ListType::Atomic => SchemaListType::Atomic,
                    ListType::Set => SchemaListType::Set,
                    ListType::Map => SchemaListType::Map,
                };
                self.builder.list(item, list_type, &keys)
            }
            Some(JsonType::Object) | None if structured => self.object(node, embedded, preserves),
            Some(JsonType::Object) | None if node.additional != Additional::Absent => {
                let value = match schema.additional(node) {
                    Some(value) => self.value(value, false, true),
                    None => self.untyped(),
                };
                self.builder.map(value, MapType::Granular)
            }
            Some(JsonType::Object) => self.object(node, false, preserves),
            None if node.flags.has(Flags::INT_OR_STRING) => self.builder.scalar(Type::IntOrString),
            None if preserves => self.builder.scalar(Type::Any),
            None => self.nothing(),
            Some(JsonType::Boolean) => self.builder.scalar(Type::Bool),
            Some(JsonType::Integer) => self.builder.scalar(Type::Int64),
            Some(JsonType::Number) => self.builder.scalar(Type::Float64),
            Some(JsonType::String) => self.text(node),
            Some(JsonType::Unknown(_)) => self.builder.scalar(Type::Any),
        };
        if node.flags.has(Flags::ATOMIC_MAP) {
            self.builder.set_map_type(id, MapType::Atomic);
        }
        let default = if own_default { schema.default(node).cloned() } else { None };
        self.structural(id, node, preserves, default);
        id
    }

    fn text(&mut self, node: &Node) -> NodeId {
        let id = self.builder.scalar(Type::String);
        let values = self.schema.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Enum(values) => Some(values.values.of(&self.schema.values)),
            _ => None,
        });
        if let Some(values) = values {
            self.builder.set_enum(id, values.iter().filter_map(|value| value.as_str()));
        }
        id
    }

    /// A position where the schema allows nothing: scalars are kept for validation to reject, members are unknown.
    fn nothing(&mut self) -> NodeId {
        let id = self.builder.reserve();
        self.builder.set_struct(id, StructSpec::default());
        id
    }

    /// A member that `additionalProperties: true` allows.
    fn untyped(&mut self) -> NodeId {
        let id = self.nothing();
        self.builder.set_structural(id, Structural { untyped: true, ..Structural::default() });
        id
    }

    fn object(&mut self, node: &Node, resource: bool, preserved: bool) -> NodeId {
        let schema = self.schema;
        let required: HashSet<&str> = schema
            .constraints(node)
            .iter()
            .find_map(|constraint| match constraint {
                Constraint::Required(names) => Some(schema.strs(*names).collect()),
                _ => None,
            })
            .unwrap_or_default();
        let mut fields = Vec::with_capacity(node.properties.len as usize + 3);
        if resource {
            // The type fields come first, which distinguishes kinds from other structs.
            let (text, meta) = self.meta();
            for (name, node) in [("kind", text), ("apiVersion", text), ("metadata", meta)] {
                fields.push((FieldSpec { name, ..FieldSpec::default() }, node));
            }
        }
        for (name, property) in schema.properties(node) {
            if resource && is_meta_field(name) {
                continue;
            }
            let id = self.value(property, false, false);
            let spec = FieldSpec {
                name,
                required: required.contains(&name),
                topology_marked: property.flags.has(Flags::LIST_TYPE_DECLARED)
                    || property.flags.has(Flags::MAP_TYPE_DECLARED),
                default: schema.default(property).cloned(),
                ..FieldSpec::default()
            };
            fields.push((spec, id));
        }
        let id = self.builder.reserve();
        self.builder.set_struct(id, StructSpec { fields, ..StructSpec::default() });
        self.structural(id, node, preserved, None);
        id
    }

    fn meta(&mut self) -> (NodeId, NodeId) {
        *self.meta.get_or_insert_with(|| {
            let text = self.builder.scalar(Type::String);
            // Pruning keeps the two fields with any value.
            let kept = Structural { preserve_unknown_fields: true, ..Structural::default() };
            self.builder.set_structural(text, kept);
            (text, self.builder.builtin(object_meta::schema()))
        })
    }

    fn structural(
        &mut self,
        id: NodeId,
        node: &Node,
        preserved: bool,
        default: Option<pintle_machinery::Value>,
    ) {
        let structural = Structural {
            nullable: node.flags.has(Flags::NULLABLE),
            preserve_unknown_fields: preserved || node.flags.has(Flags::PRESERVE_UNKNOWN),
            embedded_resource: node.flags.has(Flags::EMBEDDED_RESOURCE),
            formatted: node.flags.has(Flags::FORMATTED),
            untyped: false,
            default,
        };
        if structural != Structural::default() {
            self.builder.set_structural(id, structural);
        }
    }
}

#[cfg(test)]
mod tests;
