//! The facts of a parsed schema.
//!
//! Nodes refer to each other by index, names are slices of one text, and rare facts are in side tables.

use std::sync::OnceLock;

use pintle_machinery::Value;

use super::node::{Additional, Constraint, Flags, JsonType, ListType, Node, NodeId, Property, Rule};
use super::run::{Name, Run};

/// The nodes of a schema, and the tables that they refer to.
#[derive(Debug)]
pub(crate) struct Arena {
    /// All names, as slices of one text.
    pub(super) text: Box<str>,
    pub(super) nodes: Box<[Node]>,
    pub(super) properties: Box<[Property]>,
    pub(super) constraints: Box<[Constraint]>,
    pub(super) names: Box<[Name]>,
    pub(super) values: Box<[Value]>,
    pub(super) defaults: Box<[Value]>,
    pub(super) alternatives: Box<[NodeId]>,
    pub(super) rules: Box<[Rule]>,
    pub(super) root: NodeId,
    /// The memory that each default adds, in bytes, including nested defaults; computed on first use.
    pub(super) default_weights: OnceLock<Box<[u64]>>,
}

impl Arena {
    pub(super) fn node(&self, id: NodeId) -> &Node {
        static NOTHING: Node = Node {
            ty: None,
            list_type: ListType::Atomic,
            flags: Flags::NONE,
            properties: Run { start: 0, len: 0 },
            items: None,
            additional: Additional::Absent,
            constraints: Run { start: 0, len: 0 },
            default: 0,
            list_map_keys: Run { start: 0, len: 0 },
            rules: Run { start: 0, len: 0 },
        };
        self.nodes.get(id.index()).unwrap_or(&NOTHING)
    }

    pub(super) fn root_node(&self) -> &Node {
        self.node(self.root)
    }

    pub(super) fn str(&self, name: Name) -> &str {
        let start = name.start as usize;
        self.text.get(start..start + name.len as usize).unwrap_or_default()
    }

    /// The name of a node's type; empty for none.
    pub(super) fn type_name(&self, node: &Node) -> &str {
        match node.ty {
            None => "",
            Some(JsonType::Array) => "array",
            Some(JsonType::Boolean) => "boolean",
            Some(JsonType::Integer) => "integer",
            Some(JsonType::Number) => "number",
            Some(JsonType::Object) => "object",
            Some(JsonType::String) => "string",
            Some(JsonType::Unknown(name)) => self.str(name),
        }
    }

    pub(super) fn strs(&self, run: Run) -> impl ExactSizeIterator<Item = &str> + Clone {
        run.of(&self.names).iter().map(|&name| self.str(name))
    }

    /// The properties of a node, sorted by name.
    pub(super) fn properties(&self, node: &Node) -> impl ExactSizeIterator<Item = (&str, &Node)> + Clone {
        let properties = node.properties.of(&self.properties).iter();
        properties.map(|property| (self.str(property.name), self.node(property.node)))
    }

    pub(super) fn property(&self, node: &Node, name: &str) -> Option<&Node> {
        self.property_id(node, name).map(|id| self.node(id))
    }

    pub(super) fn property_id(&self, node: &Node, name: &str) -> Option<NodeId> {
        let properties = node.properties.of(&self.properties);
        let at = properties.binary_search_by(|property| self.str(property.name).cmp(name)).ok()?;
        properties.get(at).map(|property| property.node)
    }

    pub(super) fn enum_values(&self, node: &Node) -> Option<&[Value]> {
        self.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Enum(allowed) => Some(allowed.values.of(&self.values)),
            _ => None,
        })
    }

    /// The names of required members.
    pub(super) fn required(&self, node: &Node) -> Option<&[Name]> {
        self.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Required(names) => Some(names.of(&self.names)),
            _ => None,
        })
    }

    pub(super) fn items(&self, node: &Node) -> Option<&Node> {
        node.items.map(|items| self.node(items))
    }

    pub(super) fn additional(&self, node: &Node) -> Option<&Node> {
        match node.additional {
            Additional::Schema(id) => Some(self.node(id)),
            Additional::Absent | Additional::Forbidden | Additional::Anything => None,
        }
    }

    /// The schema of a member, from `properties` or else from `additionalProperties`.
    pub(super) fn member(&self, node: &Node, name: &str) -> Option<&Node> {
        self.property(node, name).or_else(|| self.additional(node))
    }

    pub(super) fn default(&self, node: &Node) -> Option<&Value> {
        (node.default as usize).checked_sub(1).and_then(|index| self.defaults.get(index))
    }

    pub(super) fn constraints(&self, node: &Node) -> &[Constraint] {
        node.constraints.of(&self.constraints)
    }
}
