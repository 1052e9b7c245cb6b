//! Sets of field paths.
//!
//! A set is kept in its serialized form (`FieldsV1`): a trie whose keys are encoded path elements (`f:spec`,
//! `k:{"name":"c"}`, `v:"x"`, `i:0`). A path in the set ends in an empty node or, when longer paths continue below it,
//! in a node with the member `.`. Decoding and encoding a set is therefore free, and an operation visits only the paths
//! that both sets have.
//!
//! Invariant: a node without children is a member, so there are no empty branches.

use super::{
    encode::in_order,
    path_element::{self, PathElement},
};
use crate::{Map, Value};

const SELF: &str = ".";

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldSet(Map);

impl FieldSet {
    /// The set without paths.
    pub fn new() -> FieldSet {
        FieldSet::default()
    }

    /// The set with one path of field names.
    pub fn of_fields<'a>(names: impl DoubleEndedIterator<Item = &'a str>) -> FieldSet {
        let mut node = Map::new();
        for name in names.rev() {
            let mut parent = Map::new();
            parent.insert(path_element::field(name), Value::Object(node));
            node = parent;
        }
        FieldSet(node)
    }

    /// Wraps a map that this server built, without checks.
    pub(super) fn trusted(fields: Map) -> FieldSet {
        FieldSet(fields)
    }

    /// Decodes `FieldsV1`. Path elements of unknown kinds are left out, because a newer server may have written them.
    ///
    /// # Errors
    /// When a path element is malformed, or a node is not an object.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, String> {
        let Some(fields) = fields.as_object() else { return Err("fields must be an object".to_owned()) };
        decode(fields, 0).map(|(_, children)| FieldSet(children))
    }

    /// The set as `FieldsV1`.
    pub fn into_fields_v1(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a path of encoded elements is in the set.
    pub fn has(&self, path: &[&str]) -> bool {
        let mut node = &self.0;
        for element in path {
            match node.get(*element).and_then(Value::as_object) {
                Some(child) => node = child,
                None => return false,
            }
        }
        !path.is_empty() && is_member(node)
    }

    /// Adds the paths of another set.
    pub fn union(&mut self, other: &FieldSet) {
        unite(&mut self.0, &other.0);
    }

    /// Moves the paths of another set into this one.
    pub(super) fn append(&mut self, other: FieldSet) {
        if self.is_empty() {
            *self = other;
        } else {
            append(&mut self.0, other.0);
        }
    }

    /// Removes the paths of another set; paths below them stay.
    pub fn difference(&mut self, other: &FieldSet) {
        subtract(&mut self.0, &other.0, false);
    }

    /// Removes the paths of another set and all paths below them.
    pub fn recursive_difference(&mut self, other: &FieldSet) {
        subtract(&mut self.0, &other.0, true);
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet(intersect(&self.0, &other.0))
    }

    /// The paths below which no other path is in the set.
    #[must_use]
    pub fn leaves(&self) -> FieldSet {
        FieldSet(leaves(&self.0))
    }

    /// The paths as messages show them (`.spec.containers[name="c"].image`). At each node, paths that end there come
    /// before paths that continue.
    pub fn paths(&self) -> Vec<String> {
        self.paths_within(&mut Room { paths: usize::MAX, bytes: usize::MAX })
    }

    /// As [`FieldSet::paths`], within the limits of `room`.
    pub(super) fn paths_within(&self, room: &mut Room) -> Vec<String> {
        let mut paths = Vec::new();
        list(&self.0, "", room, &mut paths);
        paths
    }

    /// The number of paths.
    pub(super) fn len(&self) -> usize {
        fn count(node: &Map) -> usize {
            children(node).map(|(_, child)| usize::from(is_member(child)) + count(child)).sum()
        }
        count(&self.0)
    }

    pub(super) fn map(&self) -> &Map {
        &self.0
    }

    pub(super) fn map_mut(&mut self) -> &mut Map {
        &mut self.0
    }
}

/// Whether the path that ends in this node is in the set.
pub(super) fn is_member(node: &Map) -> bool {
    node.is_empty() || node.contains_key(SELF)
}

/// The children of a node.
pub(super) fn children(node: &Map) -> impl Iterator<Item = (&str, &Map)> {
    node.iter()
        .filter(|(key, _)| *key != SELF)
        .filter_map(|(key, child)| Some((key.as_str(), child.as_object()?)))
}

/// Attaches a node to a parent: its paths, and its own path if it is a member. An empty node that is no member is
/// dropped.
pub(super) fn attach(parent: &mut Map, element: String, mut node: Map, member: bool) {
    if seal(&mut node, member) {
        parent.insert(element, Value::Object(node));
    }
}

/// Marks a node as member or not; returns false when the node is empty and no member.
fn seal(node: &mut Map, member: bool) -> bool {
    match member {
        false => {
            node.remove(SELF);
            !node.is_empty()
        }
        true => {
            let has_self = node.contains_key(SELF);
            match node.len() - usize::from(has_self) {
                0 => node.clear(),
                _ if !has_self => drop(node.insert(SELF.to_owned(), Value::Object(Map::new()))),
                _ => {}
            }
            true
        }
    }
}

/// Marks a node as member.
pub(super) fn make_member(node: &mut Map) {
    seal(node, true);
}

fn decode(fields: &Map, depth: usize) -> Result<(bool, Map), String> {
    if depth > crate::codec::MAX_DEPTH {
        return Err("fields are nested too deeply".to_owned());
    }
    let mut member = fields.is_empty();
    let mut decoded = Map::new();
    for (key, child) in fields {
        let Some(child) = child.as_object() else { return Err(format!("{key} must be an object")) };
        if key == SELF {
            member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (child_member, node) = decode(child, depth + 1)?;
        attach(&mut decoded, element.to_string(), node, child_member);
    }
    Ok((member, decoded))
}

fn unite(own: &mut Map, other: &Map) {
    for (element, theirs) in children(other) {
        match own.get_mut(element).and_then(Value::as_object_mut) {
            Some(ours) => {
                let member = is_member(ours) || is_member(theirs);
                unite(ours, theirs);
                seal(ours, member);
            }
            None => drop(own.insert(element.to_owned(), Value::Object(theirs.clone()))),
        }
    }
}

fn append(own: &mut Map, other: Map) {
    for (element, theirs) in other {
        let Value::Object(theirs) = theirs else { continue };
        match own.get_mut(&element).and_then(Value::as_object_mut) {
            _ if element == SELF => {}
            Some(ours) => {
                let member = is_member(ours) || is_member(&theirs);
                append(ours, theirs);
                seal(ours, member);
            }
            None => drop(own.insert(element, Value::Object(theirs))),
        }
    }
}

fn subtract(own: &mut Map, other: &Map, recursive: bool) {
    // The cost follows the smaller set: one large set is often subtracted from many small ones.
    if own.len() < other.len() {
        own.retain(|element, ours| {
            let theirs = other.get(element).filter(|_| element != SELF).and_then(Value::as_object);
            match (ours.as_object_mut(), theirs) {
                (Some(ours), Some(theirs)) => subtract_below(ours, theirs, recursive),
                _ => true,
            }
        });
        return;
    }
    for (element, theirs) in children(other) {
        let Some(ours) = own.get_mut(element).and_then(Value::as_object_mut) else { continue };
        if !subtract_below(ours, theirs, recursive) {
            own.remove(element);
        }
    }
}

/// Subtracts below a node; returns whether the node still has paths.
fn subtract_below(ours: &mut Map, theirs: &Map, recursive: bool) -> bool {
    let remove = is_member(theirs);
    if recursive && remove {
        return false;
    }
    let member = is_member(ours) && !remove;
    subtract(ours, theirs, recursive);
    seal(ours, member)
}

fn intersect(a: &Map, b: &Map) -> Map {
    let mut both = Map::new();
    for (element, ours) in children(a) {
        if let Some(theirs) = b.get(element).and_then(Value::as_object) {
            let member = is_member(ours) && is_member(theirs);
            attach(&mut both, element.to_owned(), intersect(ours, theirs), member);
        }
    }
    both
}

fn leaves(node: &Map) -> Map {
    let mut found = Map::new();
    for (element, child) in children(node) {
        let below = leaves(child);
        let member = below.is_empty();
        attach(&mut found, element.to_owned(), below, member);
    }
    found
}

/// Limits for listed field paths: a client chooses the number of paths and the length of their elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) paths: usize,
    /// The size of the paths and of the elements visited for them.
    pub(super) bytes: usize,
}

impl Room {
    pub(super) fn take_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) fn is_over(&self) -> bool {
        self.paths == 0 || self.bytes == 0
    }
}

fn list(node: &Map, prefix: &str, room: &mut Room, paths: &mut Vec<String>) {
    let mut below: Vec<(String, &Map)> = Vec::new();
    in_order(node, |element, child| {
        let Some(child) = child.as_object().filter(|_| element != SELF && !room.is_over()) else { return };
        let path = format!("{prefix}{}", path_element::display(element));
        room.take_bytes(path.len());
        if !child.is_empty() {
            below.push((path.clone(), child));
        }
        if is_member(child) {
            room.paths = room.paths.saturating_sub(1);
            paths.push(path);
        }
    });
    for (path, child) in below {
        list(child, &path, room, paths);
    }
}
