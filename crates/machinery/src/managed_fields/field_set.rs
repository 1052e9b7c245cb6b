//! Sets of field paths.
//!
//! A set is kept in its serialized form (`FieldsV1`): a trie whose keys are encoded path elements (`f:spec`,
//! `k:{"name":"c"}`, `v:"x"`, `i:0`). A path in the set ends in an empty node or, when longer paths continue below it,
//! in a node with the member `.`. An operation visits only the paths that both sets have.
//!
//! The set of a stored object is its text until an operation needs the trie: most writes change the fields of one manager,
//! and the sets of the others stay as they are.
//!
//! Invariant: a node without children is a member, so there are no empty branches.

use super::{
    encode::in_order,
    path_element::{self, PathElement},
};
use crate::{
    Map, Text, Value,
    codec::{Fallible, Weight, json, json::Parser},
};
use std::sync::OnceLock;

const SELF: &str = ".";

/// A set of field paths.
#[derive(Debug, Clone, Default)]
pub struct FieldSet {
    /// A stored set that did not change; it counts instead of `trie`.
    stored: Option<Stored>,
    trie: Map,
}

/// The text of a stored set, and its trie once it was needed.
#[derive(Debug, Clone)]
struct Stored {
    text: Text,
    trie: OnceLock<Map>,
}

impl Stored {
    fn parse(&self) -> Map {
        // This server wrote the text.
        match json::decode_any(self.text.as_bytes()) {
            Ok(Value::Object(trie)) => trie,
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// Whether all paths of the other set are in this one. Makes no trie of the text.
    fn has_all(&self, other: &Map) -> bool {
        let mut parser = Parser::new(self.text.as_bytes(), Weight::UNLIMITED);
        has_all_below(&mut parser, other, false).unwrap_or(false)
    }

    /// Whether a path of the other set may be one of this set, as far as the text tells: it has all elements of one.
    fn may_have(&self, other: &Map) -> bool {
        /// A write changes few fields; more elements are not searched for, because a client may choose them.
        const FEW: usize = 16;
        /// Escapes of characters that need none, as another server may have written them.
        const NEEDLESS: [&str; 2] = ["\\u", "\\/"];
        let mut left = FEW;
        NEEDLESS.iter().any(|escape| self.text.contains(escape)) || self.may_have_path(other, &mut left)
    }

    /// Whether the text has all elements of a path below a node of the other set, or `left` of them were searched for.
    fn may_have_path(&self, node: &Map, left: &mut usize) -> bool {
        // Other characters may be escaped in the text.
        let is_plain = |element: &str| {
            element
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.' | b'/'))
        };
        children(node).any(|(element, child)| {
            let Some(fewer) = left.checked_sub(1) else { return true };
            *left = fewer;
            (!is_plain(element) || self.text.contains(element))
                && (is_member(child) || self.may_have_path(child, left))
        })
    }
}

/// Whether the node that comes next in a text has all paths of another node, with its own if that is a `member`. Reads to
/// the end of the node, if it has them.
fn has_all_below(parser: &mut Parser<'_>, other: &Map, member: bool) -> Fallible<bool> {
    if parser.peek() != Some(b'{') {
        return Ok(false);
    }
    let mut more = parser.open(b'}');
    let mut has_self = !more;
    let mut missing = children(other).count();
    while more {
        let element = parser.key()?;
        has_self |= element == SELF;
        match other.get(&element).filter(|_| element != SELF).and_then(Value::as_object) {
            Some(child) if !has_all_below(parser, child, is_member(child))? => return Ok(false),
            Some(_) => missing = missing.saturating_sub(1),
            None => drop(parser.skip()?),
        }
        more = parser.next_member()?;
    }
    Ok(missing == 0 && (has_self || !member))
}

impl From<Map> for FieldSet {
    fn from(trie: Map) -> FieldSet {
        FieldSet { stored: None, trie }
    }
}

impl PartialEq for FieldSet {
    fn eq(&self, other: &FieldSet) -> bool {
        self.map() == other.map()
    }
}

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
        node.into()
    }

    /// Wraps a map that this server built, without checks.
    pub(super) fn trusted(fields: Map) -> FieldSet {
        fields.into()
    }

    /// The set of a stored object, without checks.
    pub(super) fn stored(text: Text) -> FieldSet {
        FieldSet { stored: Some(Stored { text, trie: OnceLock::new() }), trie: Map::new() }
    }

    /// Decodes `FieldsV1`, in the form of JSON or of a tree. Path elements of unknown kinds are left out, because a newer
    /// server may have written them. As Kubernetes does, it takes null for an empty node, and reads no value of `.`.
    ///
    /// # Errors
    /// When a path element is malformed, or a node is not an object, or the text is too large a tree for a body.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, String> {
        let open = json::opened(fields).map_err(|error| error.to_string())?;
        let Some(fields) = open.as_object() else { return Err("fields must be an object".to_owned()) };
        decode(fields, 0).map(|(_, children)| children.into())
    }

    /// The set as `FieldsV1`, in the form of a tree: its text.
    pub fn into_fields_v1(self) -> Value {
        match self.stored {
            Some(stored) => Value::from(stored.text),
            None => json::closed(&Value::Object(self.trie)),
        }
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        match &self.stored {
            Some(stored) => stored.text == "{}",
            None => self.trie.is_empty(),
        }
    }

    /// Whether a path of encoded elements is in the set.
    pub fn has(&self, path: &[&str]) -> bool {
        let mut node = self.map();
        for element in path {
            match node.get(element).and_then(Value::as_object) {
                Some(child) => node = child,
                None => return false,
            }
        }
        !path.is_empty() && is_member(node)
    }

    /// Adds the paths of another set.
    pub fn union(&mut self, other: &FieldSet) {
        unite(self.map_mut(), other.map());
    }

    /// Moves the paths of another set into this one.
    pub(super) fn append(&mut self, other: FieldSet) {
        if self.is_empty() {
            *self = other;
        } else if self.stored.as_ref().is_none_or(|stored| !stored.has_all(other.map())) {
            append(self.map_mut(), other.into_map());
        }
    }

    /// Removes the paths of another set; paths below them stay.
    pub fn difference(&mut self, other: &FieldSet) {
        self.subtract(other, false);
    }

    fn subtract(&mut self, other: &FieldSet, recursive: bool) {
        let other = other.map();
        if self.stored.as_ref().is_none_or(|stored| stored.may_have(other)) {
            subtract(self.map_mut(), other, recursive);
        }
    }

    /// Removes the paths of another set and all paths below them.
    pub fn recursive_difference(&mut self, other: &FieldSet) {
        self.subtract(other, true);
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        intersect(self.map(), other.map()).into()
    }

    /// The paths below which no other path is in the set.
    #[must_use]
    pub fn leaves(&self) -> FieldSet {
        leaves(self.map()).into()
    }

    /// The paths as messages show them (`.spec.containers[name="c"].image`). At each node, paths that end there come
    /// before paths that continue.
    pub fn paths(&self) -> Vec<String> {
        self.paths_within(&mut Room { paths: usize::MAX, bytes: usize::MAX })
    }

    /// As [`FieldSet::paths`], within the limits of `room`.
    pub(super) fn paths_within(&self, room: &mut Room) -> Vec<String> {
        let mut paths = Vec::new();
        list(self.map(), "", room, &mut paths);
        paths
    }

    /// The number of paths.
    pub(super) fn len(&self) -> usize {
        fn count(node: &Map) -> usize {
            children(node).map(|(_, child)| usize::from(is_member(child)) + count(child)).sum()
        }
        count(self.map())
    }

    /// The text of a stored set that did not change.
    pub(super) fn stored_text(&self) -> Option<&str> {
        self.stored.as_ref().map(|stored| stored.text.as_str())
    }

    /// The trie.
    pub(super) fn map(&self) -> &Map {
        match &self.stored {
            Some(stored) => stored.trie.get_or_init(|| stored.parse()),
            None => &self.trie,
        }
    }

    /// The trie, to change it.
    pub(super) fn map_mut(&mut self) -> &mut Map {
        if let Some(mut stored) = self.stored.take() {
            self.trie = stored.trie.take().unwrap_or_else(|| stored.parse());
        }
        &mut self.trie
    }

    fn into_map(mut self) -> Map {
        std::mem::take(self.map_mut())
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
pub(super) fn attach(parent: &mut Map, element: impl Into<Text>, mut node: Map, member: bool) {
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
                _ if !has_self => drop(node.insert(SELF, Value::Object(Map::new()))),
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
    let mut member = false;
    let mut decoded = Map::new();
    for (key, child) in fields {
        if key == SELF {
            member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (child_member, node) = match child {
            Value::Object(child) => decode(child, depth + 1)?,
            Value::Null => (true, Map::new()),
            _ => return Err(format!("{key} must be an object")),
        };
        attach(&mut decoded, element.to_string(), node, child_member);
    }
    Ok((member || decoded.is_empty(), decoded))
}

fn unite(own: &mut Map, other: &Map) {
    for (element, theirs) in children(other) {
        match own.get_mut(element).and_then(Value::as_object_mut) {
            Some(ours) => {
                let member = is_member(ours) || is_member(theirs);
                unite(ours, theirs);
                seal(ours, member);
            }
            None => drop(own.insert(element, Value::Object(theirs.clone()))),
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
            attach(&mut both, element, intersect(ours, theirs), member);
        }
    }
    both
}

fn leaves(node: &Map) -> Map {
    let mut found = Map::new();
    for (element, child) in children(node) {
        let below = leaves(child);
        let member = below.is_empty();
        attach(&mut found, element, below, member);
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
