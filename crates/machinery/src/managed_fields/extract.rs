//! Extracts the set of fields that a tree sets.

use super::{
    FieldSet,
    atom::{Atom, Shape, Trees},
    field_set::attach,
    path_element,
};
use crate::{Map, Value};

/// Returns the paths of all values in a tree, including empty values and nulls. Several items with one key are owned
/// together, without their parts; parts that do not fit the type are left out.
pub(super) fn field_set(tree: &Value, shape: Shape<'_>, trees: Trees) -> FieldSet {
    let mut set = Map::new();
    collect(tree, shape, trees, &mut set);
    FieldSet::trusted(set)
}

/// Adds the paths below a value; returns true when the value itself is a leaf.
fn collect(value: &Value, shape: Shape<'_>, trees: Trees, out: &mut Map) -> bool {
    match (shape.atom(Some(value)), value) {
        (Atom::Scalar(_), _) => true,
        (Atom::Map(members), _) if members.atomic => true,
        (Atom::List(items), _) if items.is_atomic() => true,
        (Atom::Map(members), Value::Object(object)) => {
            for (name, value) in object {
                let Some((shape, declared)) = members.member(name) else { continue };
                let mut below = Map::new();
                let leaf = collect(value, shape, trees, &mut below);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                attach(out, path_element::field(name), below, leaf || empty || !declared);
            }
            false
        }
        (Atom::List(items), Value::Array(values)) => {
            for value in values {
                let Ok(element) = items.element(value, trees) else { continue };
                if out.contains_key(&element) {
                    out.insert(element, Value::Object(Map::new()));
                    continue;
                }
                let mut below = Map::new();
                collect(value, items.item(), trees, &mut below);
                attach(out, element, below, true);
            }
            false
        }
        (Atom::Map(_) | Atom::List(_), _) => false,
    }
}
