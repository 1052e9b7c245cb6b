//! Removes unknown fields
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning>).

use pintle_machinery::{Map, Value};

use super::arena::Arena;
use super::node::{Additional, Flags, Node, NodeId};
use super::object_meta::{self, InvalidMetadata, MAX_UNKNOWN, is_meta_field};
use super::path::Path;

pub(super) fn prune(schema: &Arena, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::new(schema);
    let root = schema.root_node();
    pruner.value(object, Some(root), true, &Path::ROOT);
    pruner.unknown.sort_unstable();
    pruner.unknown
}

/// Removes the unknown fields of a value of a given node; `is_resource` marks a value with apiVersion, kind and
/// metadata.
pub(super) fn prune_value(schema: &Arena, node: &Node, value: &mut Value, is_resource: bool) {
    let mut pruner = Pruner::new(schema);
    pruner.value(value, Some(node), is_resource, &Path::ROOT);
}

/// Coerces every default as a value in an object would be, so that applying it needs no further check.
pub(super) fn prune_defaults(schema: &mut Arena) {
    if !schema.root_node().flags.has(Flags::BELOW_DEFAULTS) {
        return;
    }
    let mut pending = vec![(schema.root, false)];
    while let Some((id, is_metadata)) = pending.pop() {
        let node = schema.node(id);
        if let Some(default) = schema.default(node) {
            let index = node.default as usize - 1;
            let mut default = default.clone();
            if is_metadata {
                object_meta::coerce_metadata(&mut default);
            } else {
                let mut pruner = Pruner::new(schema);
                pruner.value(&mut default, Some(node), false, &Path::ROOT);
                // Invalid embedded metadata is dropped, so there is no error to report.
                let _ = object_meta::coerce_below(schema, node, &mut default, InvalidMetadata::Drop);
            }
            if let Some(slot) = schema.defaults.get_mut(index) {
                *slot = default;
            }
        }
        let node = schema.node(id);
        let embedded = node.flags.has(Flags::EMBEDDED_RESOURCE);
        let mut below: Vec<(NodeId, bool)> = Vec::new();
        for property in node.properties.of(&schema.properties) {
            below.push((property.node, embedded && schema.str(property.name) == "metadata"));
        }
        below.extend(node.items.map(|items| (items, false)));
        if let Additional::Schema(id) = node.additional {
            below.push((id, false));
        }
        pending.extend(below.into_iter().filter(|(id, _)| schema.node(*id).flags.has(Flags::BELOW_DEFAULTS)));
    }
}

struct Pruner<'s> {
    schema: &'s Arena,
    unknown: Vec<String>,
    /// The size of the paths.
    unknown_bytes: usize,
}

/// The maximum size of their paths together, in bytes.
const MAX_UNKNOWN_BYTES: usize = 256 * 1024;

impl<'s> Pruner<'s> {
    fn new(schema: &'s Arena) -> Pruner<'s> {
        Pruner { schema, unknown: Vec::new(), unknown_bytes: 0 }
    }

    fn unknown(&mut self, path: &Path<'_>) {
        if self.unknown.len() < MAX_UNKNOWN && self.unknown_bytes < MAX_UNKNOWN_BYTES {
            let path = path.to_string();
            self.unknown_bytes += path.len();
            self.unknown.push(path);
        }
    }

    /// Prunes a value. `resource` marks an object with metadata, independently of its schema. Without a schema, no
    /// field is known.
    fn value(&mut self, value: &mut Value, node: Option<&Node>, resource: bool, path: &Path<'_>) {
        match (value, node) {
            (value, Some(node)) if node.flags.has(Flags::PRESERVE_UNKNOWN) => {
                self.preserved(value, node, resource, path);
            }
            (Value::Object(members), None) => {
                for (name, _) in std::mem::take(members) {
                    self.unknown(&path.child(&name));
                }
            }
            (Value::Object(members), Some(node)) => self.members(members, node, resource, path),
            (Value::Array(items), node) => {
                let node = node.and_then(|node| self.schema.items(node));
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, node, false, &path.index(index));
                }
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
        }
    }

    fn members(&mut self, members: &mut Map, node: &Node, resource: bool, path: &Path<'_>) {
        let resource = resource || node.flags.has(Flags::EMBEDDED_RESOURCE);
        let schema = self.schema;
        members.retain(|name, value| {
            if resource && is_meta_field(name) {
                return true;
            }
            if let Some(property) = schema.property(node, name) {
                self.value(value, Some(property), false, &path.child(name));
                return true;
            }
            match node.additional {
                Additional::Absent => {
                    self.unknown(&path.child(name));
                    false
                }
                Additional::Schema(_) | Additional::Forbidden | Additional::Anything => {
                    self.value(value, schema.additional(node), false, &path.child(name));
                    true
                }
            }
        });
    }

    /// Keeps unknown fields and prunes known ones by their own schemas. Items of lists are preserved in the same way,
    /// independently of their schema.
    fn preserved(&mut self, value: &mut Value, node: &Node, resource: bool, path: &Path<'_>) {
        let schema = self.schema;
        match value {
            Value::Object(members) => {
                let resource = resource || node.flags.has(Flags::EMBEDDED_RESOURCE);
                for (name, value) in members {
                    if resource && is_meta_field(name) {
                        continue;
                    }
                    let known = schema.property(node, name);
                    if known.is_some() || node.additional != Additional::Absent {
                        let known = known.or_else(|| schema.additional(node));
                        self.value(value, known, false, &path.child(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(node) = schema.items(node) else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.preserved(item, node, false, &path.index(index));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
