//! Adapts ownership to changed types: when a type becomes atomic, each manager of a part owns the whole.
//!
//! No change is needed when a type stops being atomic: its paths stay, and later writes add to them.

use super::{
    FieldSet,
    atom::{Atom, Shape},
    field_set::{children, is_member},
};
use crate::{Map, Value};

/// Adapts a set to the current type.
pub(super) fn reconcile(set: &mut FieldSet, shape: Shape<'_>) {
    if needs(set.map(), shape, false) {
        node(set.map_mut(), shape, false);
    }
}

/// Whether the set needs a change; avoids copies in the common case.
pub(super) fn needs(fields: &Map, shape: Shape<'_>, leaf: bool) -> bool {
    below(shape, |atom| match becomes_atomic(atom, fields, leaf) {
        Some(changes) => changes,
        None => children(fields).any(|(element, child)| {
            member(atom, element)
                .is_some_and(|shape| needs(child, shape, is_member(child) && child.is_empty()))
        }),
    })
}

fn node(fields: &mut Map, shape: Shape<'_>, leaf: bool) {
    below(shape, |atom| match becomes_atomic(atom, fields, leaf) {
        Some(true) => {
            fields.clear();
            true
        }
        Some(false) => false,
        None => {
            for (element, child) in fields.iter_mut() {
                let (Some(shape), Some(child)) = (member(atom, element), child.as_object_mut()) else {
                    continue;
                };
                let leaf = child.is_empty();
                node(child, shape, leaf);
            }
            false
        }
    });
}

/// Checks a typed value. Types that are deduced from a value cannot have changed.
fn below(shape: Shape<'_>, check: impl FnOnce(Atom<'_>) -> bool) -> bool {
    match shape {
        Shape::Typed { .. } => check(shape.atom(None)),
        Shape::Deduced | Shape::Opaque => false,
    }
}

/// For an atomic value: whether the set contains parts of it.
fn becomes_atomic(atom: Atom<'_>, fields: &Map, leaf: bool) -> Option<bool> {
    match atom {
        Atom::Map(members) if members.atomic => Some(!leaf && children(fields).next().is_some()),
        Atom::List(items) if items.is_atomic() => Some(!leaf),
        Atom::Map(_) | Atom::List(_) => None,
        Atom::Scalar(_) => Some(false),
    }
}

fn member<'a>(atom: Atom<'a>, element: &str) -> Option<Shape<'a>> {
    match atom {
        Atom::Map(members) => members.member(element.strip_prefix("f:")?).map(|(shape, _)| shape),
        Atom::List(items) => (element != ".").then(|| items.item()),
        Atom::Scalar(_) => None,
    }
}

/// Whether the encoded set of an entry needs a change.
pub(super) fn entry_needs(entry: &Value, shape: Shape<'_>) -> bool {
    entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|fields| needs(fields, shape, false))
}
