//! Plans: the form in which expressions are evaluated.

use super::cost::CallCost;
use crate::functions::Function;
use crate::pattern::Pattern;
use crate::value::{Key, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// An expression ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) root: Node,
    /// The names of the variables that the expression uses.
    pub(super) variables: Box<[Box<str>]>,
    /// The number of macro variables. Each has its own slot, so that evaluations of nested parts do not interfere.
    pub(super) slots: usize,
    /// The total weight of all literal patterns.
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
    /// A literal, or a value computed from literals.
    Constant(Value<'static>),
    /// A variable or a computed value, with a path.
    Attribute(Box<Attribute>),
    /// `has()`: whether the last step of a path yields a value.
    Test(Box<Attribute>),
    /// The accumulator of a macro, moved out because its new value will replace it.
    TakeLocal(usize),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal(Box<[Node; 2]>),
    NotEqual(Box<[Node; 2]>),
    /// Whether the left side is in a set of constants.
    InSet(Box<Node>, HashSet<Key<'static>>),
    /// The first optional with a value.
    OptionalOr(Box<[Node; 2]>),
    /// The value of an optional, or a default.
    OptionalOrValue(Box<[Node; 2]>),
    /// True unless the value is `false`: errors do not end a macro.
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    /// Items, and whether each is an optional to unwrap.
    List(Box<[(Node, bool)]>),
    /// Keys and values, and whether each value is an optional to unwrap.
    Map(Box<[(Node, Node, bool)]>),
    /// An object with a type.
    Object(Box<Construction>),
    Fold(Box<Fold>),
}

/// A value with a path.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) root: Root,
    pub(super) qualifiers: Vec<Qualifier>,
}

/// The start of a path.
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
    /// `?`: a step that may have no value.
    pub(super) optional: bool,
}

/// A call of a function or method; its target is its first argument.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) implementation: Implementation,
    pub(super) args: Box<[Node]>,
    pub(super) cost: CallCost,
    /// Whether all arguments are evaluated even if one of them fails.
    pub(super) eager: bool,
}

/// The implementation of a call.
#[derive(Debug)]
pub(super) enum Implementation {
    Function(Function),
    /// The second argument is a literal pattern.
    Matches(Pattern),
    Find(Pattern),
    FindAll(Pattern),
}

/// The construction of an object: `Name{field: value}`.
#[derive(Debug)]
pub(super) struct Construction {
    pub(super) type_name: Arc<str>,
    /// Names and values, and whether each value is an optional to unwrap.
    pub(super) fields: Box<[(Arc<str>, Node, bool)]>,
}

/// A macro: for each item of a range, a step computes the next accumulator.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    /// The slot of the item or key; with two variables, of the position or key.
    pub(super) first: usize,
    /// The slot of the item or value, if there are two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    /// Evaluated on first use of the accumulator.
    pub(super) initial: Node,
    /// The iteration continues while this is not false.
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}
