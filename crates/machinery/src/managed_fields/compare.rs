//! Compares two states of an object and returns the differences as sets of fields.
//!
//! In canonical trees, a field that Go always writes (`status: {}`) is missing when it is empty. It counts as present
//! here, because the sets that clients see contain it.

use super::{
    FieldSet,
    atom::{Atom, Items, Members, Shape, Trees, items, object, same, zero},
    field_set::{attach, make_member},
    path_element,
};
use crate::{Map, Text, Value};
use pintle_schema::SchemaRef;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The differences of two trees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Fields that only the new tree has.
    pub added: FieldSet,
    /// Fields that both trees have, with different values.
    pub modified: FieldSet,
    /// Fields that only the old tree has.
    pub removed: FieldSet,
    /// Whether a list that was compared has an item without the values that identify it.
    pub(super) lacks_keys: bool,
}

impl Comparison {
    /// Whether the trees are the same.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The fields that the new tree sets: added and modified ones.
    #[must_use]
    pub fn changed(&self) -> FieldSet {
        let mut changed = self.modified.clone();
        changed.union(&self.added);
        changed
    }

    /// The fields that the new tree sets, and those that it removes.
    pub(super) fn into_changed_and_removed(self) -> (FieldSet, FieldSet) {
        let mut changed = self.modified;
        changed.append(self.added);
        (changed, self.removed)
    }

    pub(super) fn exclude(&mut self, fields: &FieldSet) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.recursive_difference(fields);
        }
    }
}

/// Compares two canonical objects of one type; equal parts are skipped. Fields of `metadata` without owners (names,
/// version, uid, …), `kind`, `apiVersion` and the top-level fields for which `skip` is true are left out.
pub fn compare(old: &Value, new: &Value, schema: SchemaRef<'_>, skip: impl Fn(&str) -> bool) -> Comparison {
    compare_trees(old, new, schema, Trees::Canonical, skip)
}

/// As [`compare`], for trees of either form.
pub(super) fn compare_trees(
    old: &Value,
    new: &Value,
    schema: SchemaRef<'_>,
    trees: Trees,
    skip: impl Fn(&str) -> bool,
) -> Comparison {
    let mut sets = Sets::default();
    let Atom::Map(root) = Shape::of(schema).atom(None) else { return Comparison::default() };
    let walk = Walk { trees };
    walk.members(object(Some(old)), object(Some(new)), root, &mut |name, old, new, shape| {
        if matches!(name, "kind" | "apiVersion") || skip(name) {
            return;
        }
        let Atom::Map(metadata) = shape.atom(None) else {
            return walk.node(path_element::field(name), old, new, shape, &mut sets);
        };
        if name != "metadata" {
            return walk.node(path_element::field(name), old, new, shape, &mut sets);
        }
        let mut below = Sets::default();
        walk.members(object(old), object(new), metadata, &mut |name, old, new, shape| {
            if !is_system_field(name) {
                walk.node(path_element::field(name), old, new, shape, &mut below);
            }
        });
        below.attach_to(&mut sets, &path_element::field("metadata"), false, false, false);
    });
    sets.into()
}

/// Fields of metadata that the server sets or that identify the object.
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
    lacks_keys: bool,
}

impl Sets {
    fn attach_to(self, parent: &mut Sets, element: &Text, added: bool, modified: bool, removed: bool) {
        parent.lacks_keys |= self.lacks_keys;
        for (set, parent, member) in [
            (self.added, &mut parent.added, added),
            (self.modified, &mut parent.modified, modified),
            (self.removed, &mut parent.removed, removed),
        ] {
            if member || !set.is_empty() {
                attach(parent, element.clone(), set, member);
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
            lacks_keys: sets.lacks_keys,
        }
    }
}

/// A callback for a member: its name, its old and new value, and its type.
type Visit<'f, 'v, 's> = dyn FnMut(&str, Option<&'v Value>, Option<&'v Value>, Shape<'s>) + 'f;

#[derive(Clone, Copy)]
struct Walk {
    trees: Trees,
}

impl Walk {
    /// Compares two values, at least one of which is present.
    fn node(self, element: Text, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>, out: &mut Sets) {
        let mut below = Sets::default();
        let mut modified = false;
        let (first, second) = shape.atoms(old, new);
        for atom in std::iter::once(first).chain(second) {
            if !atom.has_parts(old, new, self.trees) {
                if let (Some(old), Some(new)) = (old, new) {
                    modified |= !same(old, new);
                }
                continue;
            }
            match atom {
                Atom::Map(members) => {
                    self.members(object(old), object(new), members, &mut |name, old, new, shape| {
                        self.node(path_element::field(name), old, new, shape, &mut below);
                    });
                }
                Atom::List(kind) => self.list(items(old), items(new), kind, &mut below),
                Atom::Scalar(_) => {}
            }
        }
        below.attach_to(out, &element, old.is_none(), modified, new.is_none());
    }

    /// Calls `visit` for the members of two objects that differ.
    fn members<'v, 's>(
        self,
        old: Option<&'v Map>,
        new: Option<&'v Map>,
        members: Members<'s>,
        visit: &mut Visit<'_, 'v, 's>,
    ) {
        static EMPTY: LazyLock<Map> = LazyLock::new(Map::new);
        let declared = members.declared().filter(|_| self.trees == Trees::Canonical);
        let always = |name: &str| declared?.field(name).filter(|field| field.is_always_written()).map(zero);
        let given = |value: &&Value| declared.is_none() || !value.is_null();
        let mut pair = |name: &str, left: Option<&'v Value>, right: Option<&'v Value>| {
            let (left, right) = (left.filter(given), right.filter(given));
            if left == right {
                return;
            }
            let Some((shape, _)) = members.member(name) else { return };
            let left = left.or_else(|| old.and_then(|_| always(name)));
            let right = right.or_else(|| new.and_then(|_| always(name)));
            if left != right {
                visit(name, left, right, shape);
            }
        };
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
        // A field absent from both objects is equal in them, unless one of the objects itself is absent.
        if let Some(schema) = declared
            && old.is_some() != new.is_some()
        {
            for field in schema.always_written().filter_map(|index| schema.field_at(index)) {
                let name = field.name();
                if !left.contains_key(name)
                    && !right.contains_key(name)
                    && let Some((shape, _)) = members.member(name)
                {
                    visit(name, old.map(|_| zero(field)), new.map(|_| zero(field)), shape);
                }
            }
        }
    }

    fn list(self, old: &[Value], new: &[Value], kind: Items<'_>, out: &mut Sets) {
        let mut by_element: BTreeMap<Text, Same<'_>> = BTreeMap::new();
        for item in old {
            match kind.element(item, self.trees) {
                Ok(element) => by_element.entry(element.into()).or_default().old.push(item),
                Err(_) => out.lacks_keys |= matches!(kind, Items::Keyed(..)),
            }
        }
        for item in new {
            match kind.element(item, self.trees) {
                Ok(element) => by_element.entry(element.into()).or_default().new.push(item),
                Err(_) => out.lacks_keys |= matches!(kind, Items::Keyed(..)),
            }
        }
        let shape = kind.item();
        for (element, same) in by_element {
            match (same.old.as_slice(), same.new.as_slice()) {
                ([], [new]) => self.node(element, None, Some(new), shape, out),
                ([old], []) => self.node(element, Some(old), None, shape, out),
                ([old], [new]) if old != new => self.node(element, Some(old), Some(new), shape, out),
                ([_], [_]) | ([], []) => {}
                // Several items with the same key are treated as one field.
                ([_, _, ..], [_, _, ..]) => {
                    if same.old != same.new {
                        attach(&mut out.modified, element, Map::new(), true);
                    }
                }
                ([_, _, ..], new) => {
                    if let [new] = new {
                        self.node(element.clone(), None, Some(new), shape, out);
                    }
                    mark(&mut out.removed, element);
                }
                (old, [_, _, ..]) => {
                    if let [old] = old {
                        self.node(element.clone(), Some(old), None, shape, out);
                    }
                    mark(&mut out.added, element);
                }
            }
        }
    }
}

/// The items with one key.
#[derive(Default)]
struct Same<'a> {
    old: Vec<&'a Value>,
    new: Vec<&'a Value>,
}

fn mark(set: &mut Map, element: Text) {
    match set.get_mut(&element).and_then(Value::as_object_mut) {
        Some(node) => make_member(node),
        None => attach(set, element, Map::new(), true),
    }
}
