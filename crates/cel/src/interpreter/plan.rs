//! Plans: expressions as they are evaluated.

use super::cost::CallCost;
use crate::functions::Function;
use crate::pattern::Pattern;
use crate::value::{Key, Value};
use std::collections::HashSet;

/// An expression ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) root: Node,
    /// The names of the variables the expression uses.
    pub(super) variables: Box<[Box<str>]>,
    /// How many variables of macros there are. Each has a slot of its own, so that a part of a macro may be evaluated
    /// while another part is.
    pub(super) slots: usize,
    /// Of all patterns that are written out.
    pub(super) pattern_weight: u64,
}

impl Plan {
    pub(crate) fn pattern_weight(&self) -> u64 {
        self.pattern_weight
    }
}

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    /// A literal, or what was computed from literals.
    Constant(Value<'static>),
    /// A variable or a computed value, and a path from there.
    Attribute(Box<Attribute>),
    /// Whether the last step of a path leads anywhere: `has()`.
    Test(Box<Attribute>),
    /// The accumulator of a macro, which the value made from it will replace, so that it need not be copied.
    TakeLocal(usize),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal(Box<[Node; 2]>),
    NotEqual(Box<[Node; 2]>),
    /// Whether the left side is among constants.
    InSet(Box<Node>, HashSet<Key<'static>>),
    /// The first optional that has a value.
    OptionalOr(Box<[Node; 2]>),
    /// The value of an optional, or else another value.
    OptionalOrValue(Box<[Node; 2]>),
    /// What is not strictly false is true: errors do not end a macro.
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    /// Items, and whether each is an optional to be taken for its value.
    List(Box<[(Node, bool)]>),
    /// Keys and values, and whether each value is an optional to be taken for its value.
    Map(Box<[(Node, Node, bool)]>),
    Fold(Box<Fold>),
}

/// A value and a path from there.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) root: Root,
    pub(super) qualifiers: Vec<Qualifier>,
}

/// Where a path begins.
#[derive(Debug)]
pub(super) enum Root {
    /// A variable of the environment.
    Variable(usize),
    /// A variable of a macro.
    Local(usize),
    /// `condition ? then : otherwise`
    Conditional(Box<[Node; 3]>),
    /// Anything else.
    Computed(Node),
}

/// A step of a path: a field, a key or a position.
#[derive(Debug)]
pub(super) struct Qualifier {
    pub(super) index: Node,
    /// `?`: a step that may lead nowhere.
    pub(super) optional: bool,
}

/// A call of a function or method; its target is its first argument.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) implementation: Implementation,
    pub(super) args: Box<[Node]>,
    pub(super) cost: CallCost,
    /// All arguments are evaluated even if one of them fails.
    pub(super) eager: bool,
}

/// What a call does.
#[derive(Debug)]
pub(super) enum Implementation {
    Function(Function),
    /// The second argument is a pattern known beforehand.
    Matches(Pattern),
    Find(Pattern),
    FindAll(Pattern),
}

/// A macro: for each item of a range, a step makes a new accumulator of the one before.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    /// The slot of the item or key; with two variables, of the position or key.
    pub(super) first: usize,
    /// The slot of the item or value, if there are two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    /// Evaluated when the accumulator is first looked at.
    pub(super) initial: Node,
    /// Items are gone through as long as this is not false.
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}
