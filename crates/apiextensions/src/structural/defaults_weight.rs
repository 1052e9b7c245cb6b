//! Computes the memory that defaults would take.
//!
//! A default is applied to each item of a list, and inside other defaults, so a few bytes of an object and a small
//! schema can expand without bound. The size is therefore computed before any default is applied.

use std::cell::OnceCell;

use pintle_machinery::{FieldError, FieldPath, Value};

use super::arena::Arena;
use super::node::{Flags, Node};

/// The maximum memory that defaults may add to an object, in bytes.
const MAX_ADDED: u64 = 32 << 20;

/// The approximate memory of values, in bytes: an object with its first member, another member, any other value.
const OBJECT: u64 = 640;
const MEMBER: u64 = 112;
const VALUE: u64 = 32;

/// The memory that each default adds, including nested defaults, by its index among the defaults.
fn weights(schema: &Arena) -> Box<[u64]> {
    let known: Vec<OnceCell<u64>> = schema.defaults.iter().map(|_| OnceCell::new()).collect();
    let weigher = Weigher { schema, known: &known };
    for node in schema.nodes.iter().filter(|node| node.default > 0) {
        weigher.default(node);
    }
    known.into_iter().map(|known| known.into_inner().unwrap_or(0)).collect()
}

/// The error for an object to which defaults would add too much; `None` for all others.
pub(super) fn excess(schema: &Arena, object: &Value) -> Option<FieldError> {
    if !schema.root_node().flags.has(Flags::BELOW_DEFAULTS) {
        return None;
    }
    let weights = schema.default_weights.get_or_init(|| weights(schema));
    let known = |node: &Node| (node.default as usize).checked_sub(1).and_then(|at| weights.get(at).copied());
    let added = added(schema, schema.root_node(), object, &known);
    let detail = "the defaults of the schema would add too much to the object";
    (added > MAX_ADDED).then(|| FieldError::forbidden(&FieldPath::default(), detail))
}

/// Computes the weight of each default of a schema once. The nodes form no cycles, so the recursion ends.
struct Weigher<'s, 'k> {
    schema: &'s Arena,
    known: &'k [OnceCell<u64>],
}

impl Weigher<'_, '_> {
    /// The weight of a node's default; `None` for a node without a default.
    fn default(&self, node: &Node) -> Option<u64> {
        let known = self.known.get((node.default as usize).checked_sub(1)?)?;
        let default = self.schema.default(node)?;
        Some(*known.get_or_init(|| {
            weight(default).saturating_add(added(self.schema, node, default, &|node| self.default(node)))
        }))
    }
}

/// The memory that [`super::defaults::set_defaults`] would add to a value.
fn added(schema: &Arena, node: &Node, value: &Value, of_default: &dyn Fn(&Node) -> Option<u64>) -> u64 {
    if !node.flags.has(Flags::BELOW_DEFAULTS) {
        return 0;
    }
    let replaced = |node: &Node, value: &Value| match node.forbids(value) {
        true => of_default(node),
        false => None,
    };
    let below = |node: &Node, value: &Value| {
        replaced(node, value).unwrap_or_else(|| added(schema, node, value, of_default))
    };
    match value {
        Value::Object(members) => {
            let mut sum: u64 = 0;
            for (name, property) in schema.properties(node) {
                if property.default > 0 && !members.contains_key(name) {
                    let own = MEMBER + name.len() as u64;
                    sum = sum.saturating_add(own).saturating_add(of_default(property).unwrap_or(0));
                }
            }
            for (name, value) in members {
                if let Some(member) = schema.member(node, name) {
                    sum = sum.saturating_add(below(member, value));
                }
            }
            sum
        }
        Value::Array(items) => {
            let Some(node) = schema.items(node) else { return 0 };
            items.iter().fold(0, |sum: u64, item| sum.saturating_add(below(node, item)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The memory of a value.
fn weight(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE,
        Value::String(text) => VALUE + text.len() as u64,
        Value::Array(items) => VALUE + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| MEMBER + name.len() as u64 + weight(value));
            OBJECT + members.sum::<u64>()
        }
    }
}
