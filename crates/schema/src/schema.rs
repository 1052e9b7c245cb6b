//! The arena of nodes.

use std::borrow::Cow;

use pintle_tree::Value;

use crate::field::{Field, ProtoMember};
use crate::node::{Name, Node, NodeId, Shape};

/// Field facts of a set of types. Immutable once built; see [`SchemaRef`](crate::SchemaRef) for reading it.
#[derive(Debug)]
pub struct Schema {
    /// All names, as slices of one text.
    pub(crate) text: Cow<'static, str>,
    pub(crate) nodes: Box<[Node]>,
    pub(crate) fields: Box<[Field]>,
    /// Offsets of fields in the order of their names.
    pub(crate) by_name: Box<[u16]>,
    /// Hash tables of fields, see [`SchemaRef::field_index`](crate::SchemaRef::field_index).
    pub(crate) slots: Box<[u16]>,
    /// Offsets of fields that are written even if absent.
    pub(crate) always: Box<[u16]>,
    pub(crate) members: Box<[ProtoMember]>,
    pub(crate) names: Box<[Name]>,
    pub(crate) packages: Box<[Package]>,
    pub(crate) defaults: Box<[Value]>,
    pub(crate) root: NodeId,
    /// The built-in schema, if nodes of this one refer to its nodes.
    pub(crate) base: Option<&'static Schema>,
    /// Whether the schema is structural: not built from Go types.
    pub(crate) structural: bool,
    /// Named types, sorted by package path and name.
    pub(crate) types: Box<[NodeId]>,
    /// Top-level kinds, sorted by group, version and name.
    pub(crate) kinds: Box<[NodeId]>,
}

/// The path of a package, and the API group and version it is served under.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Package {
    pub(crate) path: Name,
    pub(crate) group: Name,
    pub(crate) version: Name,
}

impl Schema {
    pub(crate) fn str(&self, name: Name) -> &str {
        let start = name.start as usize;
        self.text.get(start..start + name.len as usize).unwrap_or_default()
    }

    /// Whether a name is this text. Texts of other lengths are not read.
    pub(crate) fn is_str(&self, name: Name, text: &str) -> bool {
        let start = name.start as usize;
        name.len as usize == text.len()
            && self.text.as_bytes().get(start..start + text.len()) == Some(text.as_bytes())
    }

    pub(crate) fn get(&self, id: NodeId) -> &Node {
        static MISSING: Node = Node {
            shape: Shape::Reserved,
            name: Name { start: 0, len: 0 },
            package: u16::MAX,
            map_type: crate::node::MapType::Granular,
            has_defaults: false,
            values: crate::node::Run { start: 0, len: 0 },
            structural: None,
        };
        self.nodes.get(id.0 as usize).unwrap_or(&MISSING)
    }
}
