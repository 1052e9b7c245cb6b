//! The fields that an applied configuration sets.

use super::{
    FieldSet,
    atom::{Atom, item_element},
    field_set::attach,
    path_element,
};
use crate::{Map, Value};
use pintle_schema::SchemaRef;

/// The paths of all that a tree sets, empty values and nulls included.
///
/// # Errors
/// When items of a list cannot be told apart by their keys, or a field is not in the schema. The text begins with the
/// path.
pub fn field_set(tree: &Value, schema: SchemaRef<'_>) -> Result<FieldSet, String> {
    let mut set = Map::new();
    collect(tree, Atom::of(schema), &mut set, true)?;
    Ok(FieldSet::trusted(set))
}

/// As [`field_set`], of a stored object: what is not as it should be is left out.
pub(super) fn stored_field_set(tree: &Value, schema: SchemaRef<'_>) -> FieldSet {
    let mut set = Map::new();
    // A lenient walk has nothing to complain of.
    let _ = collect(tree, Atom::of(schema), &mut set, false);
    FieldSet::trusted(set)
}

/// Adds the paths below a value; true when the value itself is a leaf.
fn collect(value: &Value, atom: Atom<'_>, out: &mut Map, strict: bool) -> Result<bool, String> {
    match (atom, value) {
        (Atom::Leaf, _) => Ok(true),
        (Atom::Struct(_) | Atom::Map(_), Value::Object(members)) => {
            for (name, member) in members {
                let Some((schema, declared)) = atom.member(name) else {
                    if strict {
                        return Err(format!(".{name}: field not declared in schema"));
                    }
                    continue;
                };
                let mut below = Map::new();
                let leaf = collect(member, Atom::of(schema), &mut below, strict)
                    .map_err(|error| format!(".{name}{error}"))?;
                let empty = member.is_null() || member.as_object().is_some_and(Map::is_empty);
                attach(out, path_element::field(name), below, leaf || empty || !declared);
            }
            Ok(false)
        }
        (Atom::Set | Atom::List(_), Value::Array(items)) => {
            for item in items {
                let element = match item_element(atom, item) {
                    Ok(element) => element,
                    Err(error) if strict => return Err(format!(": {error}")),
                    Err(_) => continue,
                };
                if out.contains_key(&element) {
                    if strict {
                        let element = path_element::display(&element);
                        return Err(format!(": duplicate entries for key {element}"));
                    }
                    // Items of one key are owned together, without their parts.
                    out.insert(element, Value::Object(Map::new()));
                    continue;
                }
                let mut below = Map::new();
                if let Some(schema) = atom.item() {
                    collect(item, Atom::of(schema), &mut below, strict)
                        .map_err(|error| format!("{}{error}", path_element::display(&element)))?;
                }
                attach(out, element, below, true);
            }
            Ok(false)
        }
        (Atom::Struct(_) | Atom::Map(_) | Atom::Set | Atom::List(_), _) => Ok(false),
    }
}
