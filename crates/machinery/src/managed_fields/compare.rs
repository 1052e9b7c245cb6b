//! What differs between two states of an object, as sets of fields.
//!
//! The trees are canonical: a field that Go writes always (`status: {}`) is not in them when it is empty. It counts as
//! being there all the same, for it is in the sets that clients see.

use super::{
    FieldSet,
    atom::{Atom, item_element, object, zero},
    field_set::attach,
    path_element,
};
use crate::{Map, Value};
use pintle_schema::SchemaRef;
use std::collections::BTreeMap;

/// The differences of two trees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// What only the new one has.
    pub added: FieldSet,
    /// What both have, with other values.
    pub modified: FieldSet,
    /// What only the old one has.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether the trees are the same.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// What the new tree sets: added and modified fields.
    #[must_use]
    pub fn changed(&self) -> FieldSet {
        let mut changed = self.modified.clone();
        changed.union(&self.added);
        changed
    }

    pub(super) fn exclude(&mut self, fields: &FieldSet) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.recursive_difference(fields);
        }
    }
}

/// Compares two objects of one type; parts that are equal are not looked into. Fields of `metadata` that nobody owns
/// (names, version, uid, …), the type and the top-level fields for which `skip` is true are left out.
pub fn compare(old: &Value, new: &Value, schema: SchemaRef<'_>, skip: impl Fn(&str) -> bool) -> Comparison {
    let mut sets = Sets::default();
    let atom = Atom::of(schema);
    let (old, new) = (object(Some(old)), object(Some(new)));
    members(old, new, atom, &mut |name, old, new, schema| {
        if matches!(name, "kind" | "apiVersion") || skip(name) {
            return;
        }
        if name != "metadata" {
            return node(path_element::field(name), old, new, schema, &mut sets);
        }
        let mut below = Sets::default();
        members(object(old), object(new), Atom::of(schema), &mut |name, old, new, schema| {
            if !is_system_field(name) {
                node(path_element::field(name), old, new, schema, &mut below);
            }
        });
        below.attach_to(&mut sets, &path_element::field("metadata"), false, false);
    });
    sets.into()
}

/// Fields of metadata that are the server's, or tell which object it is.
pub(super) fn is_system_field(name: &str) -> bool {
    matches!(
        name,
        "name"
            | "namespace"
            | "creationTimestamp"
            | "selfLink"
            | "uid"
            | "clusterName"
            | "generation"
            | "managedFields"
            | "resourceVersion"
    )
}

#[derive(Default)]
struct Sets {
    added: Map,
    modified: Map,
    removed: Map,
}

impl Sets {
    fn attach_to(self, parent: &mut Sets, element: &str, added: bool, removed: bool) {
        for (set, parent, member) in [
            (self.added, &mut parent.added, added),
            (self.modified, &mut parent.modified, false),
            (self.removed, &mut parent.removed, removed),
        ] {
            if member || !set.is_empty() {
                attach(parent, element.to_owned(), set, member);
            }
        }
    }
}

impl From<Sets> for Comparison {
    fn from(sets: Sets) -> Comparison {
        Comparison {
            added: FieldSet::trusted(sets.added),
            modified: FieldSet::trusted(sets.modified),
            removed: FieldSet::trusted(sets.removed),
        }
    }
}

/// Compares two values that differ, at least one of which is there.
fn node(element: String, old: Option<&Value>, new: Option<&Value>, schema: SchemaRef<'_>, out: &mut Sets) {
    let atom = Atom::of(schema);
    let mut below = Sets::default();
    let leaf = match atom {
        Atom::Leaf => true,
        Atom::Struct(_) | Atom::Map(_) => {
            let (old, new) = (object(old), object(new));
            let empty =
                |side: Option<&Map>| side.is_none_or(|side| side.is_empty() && !has_always_written(atom));
            match empty(old) && empty(new) {
                true => true,
                false => {
                    members(old, new, atom, &mut |name, old, new, schema| {
                        node(path_element::field(name), old, new, schema, &mut below);
                    });
                    false
                }
            }
        }
        Atom::Set | Atom::List(_) => {
            let items = |side: Option<&Value>| side.and_then(Value::as_array).map_or(0, Vec::len);
            match items(old) == 0 && items(new) == 0 {
                true => true,
                false => {
                    list(old, new, atom, &mut below);
                    false
                }
            }
        }
    };
    match (leaf, old, new) {
        (true, Some(_), Some(_)) => attach(&mut out.modified, element, Map::new(), true),
        (_, old, new) => below.attach_to(out, &element, old.is_none(), new.is_none()),
    }
}

fn has_always_written(atom: Atom<'_>) -> bool {
    matches!(atom, Atom::Struct(schema) if schema.is_declared() && schema.always_written().len() > 0)
}

/// What is done with a member: its name, its old and new value, and its schema.
type Visit<'f, 'v, 's> = dyn FnMut(&str, Option<&'v Value>, Option<&'v Value>, SchemaRef<'s>) + 'f;

/// Calls `visit` for the members of two objects that differ.
fn members<'v, 's>(
    old: Option<&'v Map>,
    new: Option<&'v Map>,
    atom: Atom<'s>,
    visit: &mut Visit<'_, 'v, 's>,
) {
    let always = |name: &str| match atom {
        Atom::Struct(schema) if schema.is_declared() => {
            schema.field(name).filter(|field| field.is_always_written()).map(zero)
        }
        _ => None,
    };
    let mut pair = |name: &str, left: Option<&'v Value>, right: Option<&'v Value>| {
        let (left, right) = (left.filter(|value| !value.is_null()), right.filter(|value| !value.is_null()));
        if left == right {
            return;
        }
        let Some((schema, _)) = atom.member(name) else { return };
        let left = left.or_else(|| old.and_then(|_| always(name)));
        let right = right.or_else(|| new.and_then(|_| always(name)));
        if left != right {
            visit(name, left, right, schema);
        }
    };
    static EMPTY: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    let (left, right) = (old.unwrap_or(&EMPTY), new.unwrap_or(&EMPTY));
    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (lefts.peek(), rights.peek()) {
            (Some((a, _)), Some((b, _))) => match a.cmp(b) {
                std::cmp::Ordering::Equal => {
                    if let (Some((name, old)), Some((_, new))) = (lefts.next(), rights.next()) {
                        pair(name, Some(old), Some(new));
                    }
                }
                std::cmp::Ordering::Less => {
                    if let Some((name, old)) = lefts.next() {
                        pair(name, Some(old), None);
                    }
                }
                std::cmp::Ordering::Greater => {
                    if let Some((name, new)) = rights.next() {
                        pair(name, None, Some(new));
                    }
                }
            },
            (Some(_), None) => lefts.by_ref().for_each(|(name, old)| pair(name, Some(old), None)),
            (None, Some(_)) => rights.by_ref().for_each(|(name, new)| pair(name, None, Some(new))),
            (None, None) => break,
        }
    }
    // What neither has is in both, unless one of the two objects is not there at all.
    if let Atom::Struct(schema) = atom
        && schema.is_declared()
        && old.is_some() != new.is_some()
    {
        for field in schema.always_written().filter_map(|index| schema.field_at(index)) {
            let name = field.name();
            if !left.contains_key(name) && !right.contains_key(name) {
                visit(name, old.map(|_| zero(field)), new.map(|_| zero(field)), field.ty());
            }
        }
    }
}

#[derive(Default)]
struct Items<'a> {
    old: Vec<&'a Value>,
    new: Vec<&'a Value>,
}

fn list(old: Option<&Value>, new: Option<&Value>, atom: Atom<'_>, out: &mut Sets) {
    static EMPTY: Vec<Value> = Vec::new();
    let old = old.and_then(Value::as_array).unwrap_or(&EMPTY);
    let new = new.and_then(Value::as_array).unwrap_or(&EMPTY);
    let mut by_element: BTreeMap<String, Items<'_>> = BTreeMap::new();
    for item in old {
        if let Ok(element) = item_element(atom, item) {
            by_element.entry(element).or_default().old.push(item);
        }
    }
    for item in new {
        if let Ok(element) = item_element(atom, item) {
            by_element.entry(element).or_default().new.push(item);
        }
    }
    for (element, items) in by_element {
        match (items.old.as_slice(), items.new.as_slice()) {
            ([], [new]) => self::item(element, None, Some(new), atom, out),
            ([old], []) => self::item(element, Some(old), None, atom, out),
            ([old], [new]) if old != new => self::item(element, Some(old), Some(new), atom, out),
            ([_], [_]) | ([], []) => {}
            // Items of one key are one field as long as there are several.
            ([_, _, ..], [_, _, ..]) => {
                if items.old != items.new {
                    attach(&mut out.modified, element, Map::new(), true);
                }
            }
            ([_, _, ..], new) => {
                if let [new] = new {
                    self::item(element.clone(), None, Some(new), atom, out);
                }
                mark(&mut out.removed, element);
            }
            (old, [_, _, ..]) => {
                if let [old] = old {
                    self::item(element.clone(), Some(old), None, atom, out);
                }
                mark(&mut out.added, element);
            }
        }
    }
}

fn mark(set: &mut Map, element: String) {
    match set.get_mut(&element).and_then(Value::as_object_mut) {
        Some(node) => super::field_set::make_member(node),
        None => attach(set, element, Map::new(), true),
    }
}

fn item(element: String, old: Option<&Value>, new: Option<&Value>, atom: Atom<'_>, out: &mut Sets) {
    match atom.item() {
        Some(schema) => node(element, old, new, schema, out),
        None => Sets::default().attach_to(out, &element, old.is_none(), new.is_none()),
    }
}
