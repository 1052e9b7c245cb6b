//! The fields that a create sets.
//!
//! They are those of a [comparison](super::compare::compare) with an object without members. Nothing but the text of this
//! set is needed, and it is written in one pass: a trie of it would cost more than decoding the object.

use super::{
    FieldSet,
    atom::{Atom, Items, Members, Shape, Trees, items, object, same, zero},
    compare::{Comparison, is_system_field},
    encode,
};
use crate::{
    Map, Text, Value,
    codec::json::{write_escaped, write_string},
};
use pintle_schema::SchemaRef;

/// Compares a canonical object with one without members. All fields of the result are in `added`. `skip` is as in
/// [`compare`](super::compare::compare).
pub(super) fn compare_created(new: &Value, schema: SchemaRef<'_>, skip: impl Fn(&str) -> bool) -> Comparison {
    let nothing = Map::new();
    let (Atom::Map(root), Some(new)) = (Shape::of(schema).atom(None), new.as_object()) else {
        return Comparison::default();
    };
    let mut writer = Writer { out: Vec::with_capacity(1024), lacks_keys: false };
    writer.out.push(b'{');
    each_member(Some(&nothing), new, root, &mut |name, old, new, shape| {
        if matches!(name, "kind" | "apiVersion") || skip(name) {
            return;
        }
        match (shape.atom(None), new.as_object()) {
            (Atom::Map(metadata), Some(new)) if name == "metadata" => {
                let node = writer.open(Element::Field(name), false);
                each_member(object(old), new, metadata, &mut |name, old, new, shape| {
                    if !is_system_field(name) {
                        writer.node(Element::Field(name), old, new, shape);
                    }
                });
                writer.close(node);
            }
            _ => writer.node(Element::Field(name), old, new, shape),
        }
    });
    writer.out.push(b'}');
    let added = match writer.out.as_slice() {
        b"{}" => FieldSet::new(),
        // The writer takes texts only.
        _ => FieldSet::stored(Text::from(String::from_utf8(writer.out).unwrap_or_default())),
    };
    Comparison { added, lacks_keys: writer.lacks_keys, ..Comparison::default() }
}

/// A callback for a member: its name, its old and new value, and its type.
type Visit<'f, 's> = dyn FnMut(&str, Option<&Value>, &Value, Shape<'s>) + 'f;

/// Calls `visit` for the members that differ from those of an absent object, or from the zero values of one without
/// members, sorted by name.
fn each_member<'s>(old: Option<&Map>, new: &Map, members: Members<'s>, visit: &mut Visit<'_, 's>) {
    let declared = members.declared();
    let mut absent: Vec<(&str, &Value)> = Vec::new();
    if let Some(schema) = declared.filter(|_| old.is_none()) {
        let always = schema.always_written().filter_map(|index| schema.field_at(index));
        let missing = always.filter(|field| !new.contains_key(field.name()));
        absent.extend(missing.map(|field| (field.name(), zero(field))));
        // The next one is the last.
        absent.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
    }
    let mut pair = |name: &str, value: &Value| {
        let Some((shape, _)) = members.member(name) else { return };
        let field = old.and(declared).and_then(|schema| schema.field(name));
        let old = field.filter(|field| field.is_always_written()).map(zero);
        if old != Some(value) {
            visit(name, old, value, shape);
        }
    };
    for (name, value) in new {
        while let Some((absent, zero)) = absent.pop_if(|(absent, _)| *absent < name.as_str()) {
            pair(absent, zero);
        }
        if declared.is_none() || !value.is_null() {
            pair(name, value);
        }
    }
    while let Some((absent, zero)) = absent.pop() {
        pair(absent, zero);
    }
}

/// An element of a path.
#[derive(Clone, Copy)]
enum Element<'a> {
    /// The field of this name.
    Field(&'a str),
    /// An item of a list, encoded.
    Item(&'a str),
}

struct Writer {
    out: Vec<u8>,
    lacks_keys: bool,
}

/// A node whose end is not written.
struct Node {
    start: usize,
    /// The position of its first child in the output.
    children: usize,
    /// Whether its own path is in the set.
    member: bool,
}

impl Writer {
    fn open(&mut self, element: Element<'_>, member: bool) -> Node {
        let start = self.out.len();
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        match element {
            Element::Field(name) => {
                self.out.extend_from_slice(b"\"f:");
                write_escaped(&mut self.out, name);
                self.out.push(b'"');
            }
            Element::Item(element) => write_string(&mut self.out, element),
        }
        self.out.extend_from_slice(b":{");
        let children = self.out.len();
        if member {
            self.out.extend_from_slice(MEMBER);
        }
        Node { start, children, member }
    }

    /// Ends a node: a member without children is empty, and a node that is neither is dropped.
    fn close(&mut self, node: Node) {
        let own = if node.member { MEMBER.len() } else { 0 };
        let is_leaf = self.out.len() == node.children + own;
        match node.member {
            false if is_leaf => return self.out.truncate(node.start),
            true if is_leaf => self.out.truncate(node.children),
            _ => {}
        }
        self.out.push(b'}');
    }

    /// Writes the node of a value, which was absent or the zero value of its type.
    fn node(&mut self, element: Element<'_>, old: Option<&Value>, new: &Value, shape: Shape<'_>) {
        let (first, second) = shape.atoms(old, Some(new));
        let atoms = std::iter::once(first).chain(second);
        let is_changed = |old: &Value| {
            let mut leaves =
                atoms.clone().filter(|atom| !atom.has_parts(Some(old), Some(new), Trees::Canonical));
            leaves.next().is_some() && !same(old, new)
        };
        let node = self.open(element, old.is_none_or(is_changed));
        for atom in atoms {
            match atom {
                _ if !atom.has_parts(old, Some(new), Trees::Canonical) => {}
                Atom::Map(members) => {
                    if let Some(new) = new.as_object() {
                        each_member(object(old), new, members, &mut |name, old, new, shape| {
                            self.node(Element::Field(name), old, new, shape);
                        });
                    }
                }
                Atom::List(kind) => self.list(items(Some(new)), kind),
                Atom::Scalar(_) => {}
            }
        }
        self.close(node);
    }

    fn list(&mut self, new: &[Value], kind: Items<'_>) {
        let mut elements: Vec<(String, &Value)> = Vec::with_capacity(new.len());
        for item in new {
            match kind.element(item, Trees::Canonical) {
                Ok(element) => elements.push((element, item)),
                Err(_) => self.lacks_keys |= matches!(kind, Items::Keyed(..)),
            }
        }
        elements.sort_by(|(a, _), (b, _)| a.cmp(b));
        encode::sort(&mut elements);
        for same in elements.chunk_by(|(a, _), (b, _)| a == b) {
            match same {
                [(element, new)] => self.node(Element::Item(element), None, new, kind.item()),
                // Several items with the same key are treated as one field.
                [(element, _), ..] => {
                    let node = self.open(Element::Item(element), true);
                    self.close(node);
                }
                [] => {}
            }
        }
    }
}

/// The path of a node itself, before those of its children.
const MEMBER: &[u8] = br#"".":{}"#;
