//! The nodes of a parsed template.

use crate::Value;

/// A node of a template or of an action.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// An action, or an operand: its nodes are evaluated in sequence.
    List(Box<[Node]>),
    /// A text outside of actions, a quoted text, a number or a boolean: selects itself.
    Literal(Value),
    /// A member of an object.
    Field(Box<str>),
    /// All members or items.
    Wildcard,
    /// A value and all its descendants.
    Recursive,
    /// Items of a list.
    Slice(Slice),
    /// The items of a list that pass the filter.
    Filter(Box<Filter>),
    /// The results of several paths, in sequence.
    Union(Box<[Node]>),
    /// `range`, `end`, or an unknown word.
    Identifier(Box<str>),
}

/// `[start:end:step]`; a single index is a slice of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slice {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    /// Whether the end was omitted and follows from the start.
    pub(super) end_is_derived: bool,
    pub(super) step: Option<i64>,
}

/// `[?(left operator right)]`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Node,
    pub(super) operator: Box<str>,
    pub(super) right: Node,
}
