//! Ownership under a type that has changed since: what became atomic is owned as a whole by those who owned a part of it.
//!
//! The other way round nothing is to be done: the paths of what was atomic stay, and the next writes add to them.

use super::{
    FieldSet,
    atom::{Atom, Shape},
    field_set::{children, is_member},
};
use crate::{Map, Value};

/// Brings a set up to date with the type that it is about.
pub(super) fn reconcile(set: &mut FieldSet, shape: Shape<'_>) {
    if needs(set.map(), shape, false) {
        node(set.map_mut(), shape, false);
    }
}

/// Whether anything is to be done, so that nothing is copied in the common case.
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

/// Types that are known by a value only have not changed.
fn below(shape: Shape<'_>, check: impl FnOnce(Atom<'_>) -> bool) -> bool {
    match shape {
        Shape::Typed { .. } => check(shape.atom(None)),
        Shape::Deduced | Shape::Opaque => false,
    }
}

/// For what is atomic: whether the set has parts of it.
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

/// Whether entries' sets, as they are encoded, need it.
pub(super) fn entry_needs(entry: &Value, shape: Shape<'_>) -> bool {
    entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|fields| needs(fields, shape, false))
}
