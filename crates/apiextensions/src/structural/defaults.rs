//! Applies defaults
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting>).

use pintle_machinery::{Map, Value};

use super::arena::Arena;
use super::defaults_weight::excess;
use super::node::{Flags, Node};

/// Applies defaults recursively, also inside defaults. Applies none when they would take too much memory ([`excess`]).
pub(super) fn set_defaults(schema: &Arena, object: &mut Value) {
    if excess(schema, object).is_none() {
        default_value(schema, schema.root_node(), object);
    }
}

fn default_value(schema: &Arena, node: &Node, value: &mut Value) {
    if !node.flags.has(Flags::BELOW_DEFAULTS) {
        return;
    }
    match value {
        Value::Object(members) => default_members(schema, node, members),
        Value::Array(items) => {
            let Some(node) = schema.items(node) else { return };
            for item in items {
                replace_null(schema, node, item);
                default_value(schema, node, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn default_members(schema: &Arena, node: &Node, members: &mut Map) {
    for (name, property) in schema.properties(node) {
        let Some(default) = schema.default(property) else { continue };
        match members.get_mut(name) {
            None => {
                members.insert(name, default.clone());
            }
            Some(value) if property.forbids(value) => *value = default.clone(),
            Some(_) => {}
        }
    }
    for (name, value) in members {
        if let Some(property) = schema.property(node, name) {
            default_value(schema, property, value);
        } else if let Some(additional) = schema.additional(node) {
            replace_null(schema, additional, value);
            default_value(schema, additional, value);
        }
    }
}

/// Removes from objects the nulls that are not allowed and have no default. Nulls in lists stay, for validation to
/// reject: removing an item would change the list.
pub(super) fn drop_nulls(schema: &Arena, object: &mut Value) {
    drop_nulls_below(schema, Some(schema.root_node()), object);
}

fn drop_nulls_below(schema: &Arena, node: Option<&Node>, value: &mut Value) {
    let Some(node) = node else { return };
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let Some(member) = schema.member(node, name) else { return true };
            if member.forbids(value) && schema.default(member).is_none() {
                return false;
            }
            drop_nulls_below(schema, Some(member), value);
            true
        }),
        Value::Array(items) => {
            for item in items {
                drop_nulls_below(schema, schema.items(node), item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces a forbidden null by the default; without a default it stays null.
fn replace_null(schema: &Arena, node: &Node, value: &mut Value) {
    if node.forbids(value)
        && let Some(default) = schema.default(node)
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests;
