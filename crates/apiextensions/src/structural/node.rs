//! The nodes of a parsed schema, and the constraints on their values.

use std::num::NonZeroU32;
use std::sync::Arc;

use pintle_machinery::Value;

use super::enumeration::Enumeration;
use super::pattern::Pattern;
use super::run::{Name, Run};

/// Index of a node in its [`super::arena::Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    /// Indices fit 32 bits: the size of a definition is limited to a few megabytes.
    pub(super) fn new(index: usize) -> NodeId {
        let number = u32::try_from(index).unwrap_or(u32::MAX - 1).saturating_add(1);
        NodeId(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The types of OpenAPI v3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    /// `array`
    Array,
    /// `boolean`
    Boolean,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `object`
    Object,
    /// `string`
    String,
    /// A type that no value has. Only definitions from older servers are stored with one.
    Unknown(Name),
}

impl JsonType {
    /// The type with this name.
    pub(super) fn parse(name: &str) -> Option<JsonType> {
        Some(match name {
            "array" => JsonType::Array,
            "boolean" => JsonType::Boolean,
            "integer" => JsonType::Integer,
            "number" => JsonType::Number,
            "object" => JsonType::Object,
            "string" => JsonType::String,
            _ => return None,
        })
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole; the default.
    #[default]
    Atomic,
    /// Items without duplicates.
    Set,
    /// Objects identified by their keys.
    Map,
}

/// The value of `additionalProperties`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Additional {
    /// Not declared.
    #[default]
    Absent,
    /// `false`: no other property is allowed.
    Forbidden,
    /// `true`: any property is allowed, without structure.
    Anything,
    /// A schema for additional properties.
    Schema(NodeId),
}

/// Boolean facts of a node. Those named `BELOW_…` cover the node and all its structural descendants, so that walks can
/// skip subtrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(super) const NONE: Flags = Flags(0);
    pub(super) const NULLABLE: Flags = Flags(1);
    pub(super) const PRESERVE_UNKNOWN: Flags = Flags(1 << 1);
    pub(super) const EMBEDDED_RESOURCE: Flags = Flags(1 << 2);
    pub(super) const INT_OR_STRING: Flags = Flags(1 << 3);
    pub(super) const ATOMIC_MAP: Flags = Flags(1 << 4);
    pub(super) const UNIQUE_ITEMS: Flags = Flags(1 << 5);
    pub(super) const BELOW_DEFAULTS: Flags = Flags(1 << 6);
    pub(super) const BELOW_EMBEDDED: Flags = Flags(1 << 7);
    pub(super) const BELOW_LIST_TYPES: Flags = Flags(1 << 8);
    pub(super) const BELOW_RULES: Flags = Flags(1 << 9);
    /// The list type is declared, even if as the default.
    pub(super) const LIST_TYPE_DECLARED: Flags = Flags(1 << 10);
    /// The map type is declared.
    pub(super) const MAP_TYPE_DECLARED: Flags = Flags(1 << 11);
    /// The node has a `format` other than `byte`, supported or not.
    pub(super) const FORMATTED: Flags = Flags(1 << 12);

    const BELOW: u16 =
        Self::BELOW_DEFAULTS.0 | Self::BELOW_EMBEDDED.0 | Self::BELOW_LIST_TYPES.0 | Self::BELOW_RULES.0;

    pub(super) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(super) fn set(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }

    pub(super) fn set_if(&mut self, condition: bool, flag: Flags) {
        if condition {
            self.set(flag);
        }
    }

    /// Adds the `BELOW_…` flags of a child node.
    pub(super) fn inherit(&mut self, below: Flags) {
        self.0 |= below.0 & Self::BELOW;
    }
}

/// One schema. Schemas below `allOf`, `anyOf`, `oneOf` and `not` are nodes too, reached through constraints instead of
/// structure.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(super) ty: Option<JsonType>,
    pub(super) list_type: ListType,
    pub(super) flags: Flags,
    /// Range in the properties, sorted by name.
    pub(super) properties: Run,
    pub(super) items: Option<NodeId>,
    pub(super) additional: Additional,
    /// Range in the constraints, at most one of each kind.
    pub(super) constraints: Run,
    /// One more than an index into the defaults; zero for none.
    pub(super) default: u32,
    /// Range in the names.
    pub(super) list_map_keys: Run,
    /// Range in the rules of `x-kubernetes-validations`.
    pub(super) rules: Run,
}

impl Node {
    /// Whether the value is a null that the node does not allow.
    pub(super) fn forbids(&self, value: &Value) -> bool {
        value.is_null() && !self.flags.has(Flags::NULLABLE)
    }
}

/// A named property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Property {
    pub(super) name: Name,
    pub(super) node: NodeId,
}

/// A restriction of values beyond their type.
#[derive(Debug)]
pub(crate) enum Constraint {
    /// A supported format, under the name in the schema.
    Format(Name),
    /// A format that only defaults are validated by.
    UnsupportedFormat(Name),
    Maximum {
        limit: f64,
        exclusive: bool,
    },
    Minimum {
        limit: f64,
        exclusive: bool,
    },
    MultipleOf(f64),
    MaxLength(i64),
    MinLength(i64),
    /// Shared by all nodes with the same pattern.
    Pattern(Arc<Pattern>),
    MaxItems(i64),
    MinItems(i64),
    MaxProperties(i64),
    MinProperties(i64),
    Enum(Enumeration),
    /// Range in the names.
    Required(Run),
    /// Range in the alternatives.
    AllOf(Run),
    /// Range in the alternatives.
    AnyOf(Run),
    /// Range in the alternatives.
    OneOf(Run),
    Not(NodeId),
}

/// An entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The expression.
    pub rule: Box<str>,
    /// The fixed message; empty for none.
    pub message: Box<str>,
    /// The expression that computes the message; empty for none.
    pub message_expression: Box<str>,
    /// The reason's name; `None` when not declared.
    pub reason: Option<Box<str>>,
    /// The path of the reported field, relative to the rule's position; empty for the position itself.
    pub field_path: Box<str>,
    /// Whether `oldSelf` is an optional and the rule also holds for new values.
    pub optional_old_self: Option<bool>,
}
