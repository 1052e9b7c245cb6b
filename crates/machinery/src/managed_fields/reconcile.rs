//! Adapts ownership to changed types: when a type becomes atomic, each manager of a part owns the whole.
//!
//! No change is needed when a type stops being atomic: its paths stay, and later writes add to them.

use super::{
    FieldSet,
    atom::{Atom, Shape},
    field_set::{children, is_member},
};
use crate::{
    Map, Value,
    codec::{Fallible, Weight, json::Parser},
};
use pintle_schema::{Schema, SchemaRef};
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::LazyLock,
    sync::atomic::{AtomicU64, Ordering},
};

/// Adapts a set to the current type.
pub(super) fn reconcile(set: &mut FieldSet, shape: Shape<'_>) {
    let needs = match set.stored_text() {
        Some(text) => text_needs(text, shape),
        None => needs(set.map(), shape, false),
    };
    if needs {
        node(set.map_mut(), shape, false);
    }
}

/// Whether a set needs a change. Makes no tree of it: it seldom does.
fn text_needs(text: &str, shape: Shape<'_>) -> bool {
    static SETTLED: LazyLock<Settled> = LazyLock::new(Settled::default);
    match shape {
        Shape::Typed { schema, .. } if std::ptr::eq(schema.schema(), Schema::builtin()) => {
            SETTLED.needs(text, schema)
        }
        _ => read_needs(text, shape),
    }
}

/// Remembers sets of built-in types that need no change: the types stay while the server runs, and most objects of a
/// kind have the same few sets.
struct Settled {
    keys: RandomState,
    /// Fingerprints, each at the place that it names. They are keyed: nobody can choose two sets of the same fingerprint.
    fingerprints: [AtomicU64; 2048],
}

impl Default for Settled {
    fn default() -> Settled {
        Settled { keys: RandomState::new(), fingerprints: [const { AtomicU64::new(0) }; 2048] }
    }
}

impl Settled {
    /// Whether a set of a built-in type needs a change.
    fn needs(&self, text: &str, schema: SchemaRef<'_>) -> bool {
        let fingerprint = self.keys.hash_one((schema.id(), text));
        let place = self.fingerprints.get(fingerprint as usize % self.fingerprints.len());
        if place.is_some_and(|place| place.load(Ordering::Relaxed) == fingerprint) {
            return false;
        }
        let needs = read_needs(text, Shape::of(schema));
        if let Some(place) = place.filter(|_| !needs) {
            place.store(fingerprint, Ordering::Relaxed);
        }
        needs
    }
}

/// Whether a set needs a change, by its text.
fn read_needs(text: &str, shape: Shape<'_>) -> bool {
    let mut parser = Parser::new(text.as_bytes(), Weight::UNLIMITED);
    // Text that cannot be read is an empty set.
    parser.peek() == Some(b'{') && next_needs(&mut parser, Some(shape), true).unwrap_or(false)
}

/// Whether the node that comes next in a text needs a change, and its end. Its depth is that of a tree.
fn next_needs(parser: &mut Parser<'_>, shape: Option<Shape<'_>>, root: bool) -> Fallible<bool> {
    let atom = match shape {
        Some(shape @ Shape::Typed { .. }) if parser.peek() == Some(b'{') => shape.atom(None),
        _ => return parser.skip().map(|_| false),
    };
    let mut more = parser.open(b'}');
    let leaf = !more && !root;
    let (parts, mut needs) = match atom {
        Atom::Map(members) if members.atomic => (true, false),
        Atom::List(items) if items.is_atomic() => (false, !leaf),
        Atom::Map(_) | Atom::List(_) | Atom::Scalar(_) => (false, false),
    };
    while more {
        let element = parser.key()?;
        needs |= parts && element != ".";
        needs |= next_needs(parser, member(atom, &element), false)?;
        more = parser.next_member()?;
    }
    Ok(needs)
}

/// Whether the set needs a change; avoids copies in the common case.
fn needs(fields: &Map, shape: Shape<'_>, leaf: bool) -> bool {
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
    match entry.get("fieldsV1") {
        Some(Value::String(text)) => text_needs(text, shape),
        Some(Value::Object(fields)) => needs(fields, shape, false),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_schema::Schema;

    #[test]
    fn parts_of_atomic_values_need_a_change_in_either_form() {
        let schema = Schema::builtin().by_kind("", "v1", "Pod").unwrap();
        for (text, expected) in [
            ("{}", false),
            (r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:unknown":{"f:a":{}}}"#, false),
            (r#"{"f:spec":{"f:tolerations":{}}}"#, false),
            (r#"{"f:spec":{"f:tolerations":{".":{}}}}"#, true),
            (r#"{"f:spec":{"f:hostname":{},"f:tolerations":{"i:0":{}}}}"#, true),
            (r#"{"f:spec":{"f:nodeSelector":{}}}"#, false),
            (r#"{"f:spec":{"f:nodeSelector":{".":{}}}}"#, false),
            (r#"{"f:spec":{"f:nodeSelector":{".":{},"f:a":{}}}}"#, true),
            (r#"{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:command":{}}}}}"#, false),
            (r#"{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:command":{"i:0":{}}}}}}"#, true),
        ] {
            let mut stored = FieldSet::stored(text.into());
            assert_eq!(needs(stored.map(), Shape::of(schema), false), expected, "{text}");
            assert_eq!(read_needs(text, Shape::of(schema)), expected, "{text}");
            // The second time it is remembered, for this type alone.
            assert_eq!([(); 2].map(|()| text_needs(text, Shape::of(schema))), [expected; 2], "{text}");
            let other = Schema::builtin().by_kind("", "v1", "ConfigMap").unwrap();
            assert!(!text_needs(text, Shape::of(other)), "{text}");
            assert_eq!(text_needs(text, Shape::of(schema)), expected, "{text}");
            reconcile(&mut stored, Shape::of(schema));
            assert_eq!(stored.stored_text().is_none(), expected, "{text}");
        }
    }
}
