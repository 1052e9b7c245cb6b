//! The parts of a parsed schema: nodes in an arena, and the constraints on their values.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::enumeration::Enumeration;
use super::pattern::Pattern;

/// Index of a node in its [`super::StructuralSchema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    /// Nothing has more nodes than 32 bits count: a definition is limited to a few megabytes.
    pub(super) fn new(index: usize) -> NodeId {
        let number = u32::try_from(index).unwrap_or(u32::MAX - 1).saturating_add(1);
        NodeId(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A piece of the schema's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A run of entries in one of the schema's side tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Run {
    pub(super) fn of<T>(self, table: &[T]) -> &[T] {
        let start = self.start as usize;
        table.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// The types that OpenAPI v3 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
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
}

impl JsonType {
    /// The type with this name.
    pub fn parse(name: &str) -> Option<JsonType> {
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

    /// As the schema has it.
    pub fn name(self) -> &'static str {
        match self {
            JsonType::Array => "array",
            JsonType::Boolean => "boolean",
            JsonType::Integer => "integer",
            JsonType::Number => "number",
            JsonType::Object => "object",
            JsonType::String => "string",
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole; what is not said, is so.
    #[default]
    Atomic,
    /// Items without duplicates.
    Set,
    /// Objects identified by their keys.
    Map,
}

/// What `additionalProperties` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Additional {
    /// Nothing.
    #[default]
    Absent,
    /// `false`: no other property is allowed.
    Forbidden,
    /// `true`: anything goes, without a structure of its own.
    Anything,
    /// A schema for them.
    Schema(NodeId),
}

/// Yes-or-no facts of a node. Those named `BELOW_…` speak of the node and everything that structure reaches from it, so
/// that walks leave out what they need not see.
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
    /// The list type was declared, if only as what it would be anyway.
    pub(super) const LIST_TYPE_DECLARED: Flags = Flags(1 << 10);
    /// The map type was declared.
    pub(super) const MAP_TYPE_DECLARED: Flags = Flags(1 << 11);
    /// There is a `format` other than `byte`, if only one that nobody knows.
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

    /// Takes over what a node below this one says of what is below.
    pub(super) fn inherit(&mut self, below: Flags) {
        self.0 |= below.0 & Self::BELOW;
    }
}

/// One schema. Those below `allOf`, `anyOf`, `oneOf` and `not` are nodes like others, reached through
/// constraints instead of structure.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(super) ty: Option<JsonType>,
    pub(super) list_type: ListType,
    pub(super) flags: Flags,
    /// Into the properties, sorted by name.
    pub(super) properties: Run,
    pub(super) items: Option<NodeId>,
    pub(super) additional: Additional,
    /// Into the constraints, at most one of each kind.
    pub(super) constraints: Run,
    /// One more than an index into the defaults; zero for none.
    pub(super) default: u32,
    /// Into the names.
    pub(super) list_map_keys: Run,
    /// Into the rules of `x-kubernetes-validations`.
    pub(super) rules: Run,
}

/// A named property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Property {
    pub(super) name: Name,
    pub(super) node: NodeId,
}

/// Something that values have to meet beyond their type.
#[derive(Debug)]
pub(crate) enum Constraint {
    /// A supported format, by the name the schema has.
    Format(Name),
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
    /// Shared by all nodes that have it.
    Pattern(Arc<Pattern>),
    MaxItems(i64),
    MinItems(i64),
    MaxProperties(i64),
    MinProperties(i64),
    Enum(Enumeration),
    /// Into the names.
    Required(Run),
    /// Into the alternatives.
    AllOf(Run),
    /// Into the alternatives.
    AnyOf(Run),
    /// Into the alternatives.
    OneOf(Run),
    Not(NodeId),
}

/// An entry of `x-kubernetes-validations`, as the definition has it.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The expression.
    pub rule: Box<str>,
    /// The fixed message; empty for none.
    pub message: Box<str>,
    /// The expression that makes the message; empty for none.
    pub message_expression: Box<str>,
    /// The reason's name; `None` where the definition has none.
    pub reason: Option<Box<str>>,
    /// Which field below the rule's place is at fault; empty for the place itself.
    pub field_path: Box<str>,
    /// Whether `oldSelf` is an optional and the rule also holds for new values.
    pub optional_old_self: Option<bool>,
}
