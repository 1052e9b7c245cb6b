//! Evaluates Kubernetes' JSONPath: the templates of printer columns, of selectable fields and of
//! `kubectl -o jsonpath` (<https://kubernetes.io/docs/reference/kubectl/jsonpath/>).
//!
//! A template is text with actions in braces. An action walks the object: fields (`.spec.x`, with `\.` for a dot in a
//! name, or `['x']`), list items and slices (`[0]`, `[-1:]`, `[0:4:2]`), unions (`['a','b']`), wildcards (`.*`, `[*]`),
//! filters (`[?(@.type=="Ready")]`), recursive descent (`..name`) and `range … end` over several actions. Keys that an
//! object does not have select nothing; an impossible step (an index past the end, a filter on a value that is not a
//! list) fails the whole evaluation. Both rules are those of the Go library that clients and kube-apiserver share, and
//! so are the quirks of its grammar.
//!
//! Templates come from definitions, and so from clients: depth and work are bounded.

mod evaluate;
mod literal;
mod parser;
#[cfg(test)]
mod tests;

use crate::Value;
use evaluate::{Evaluation, MAX_WORK};

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    nodes: Box<[Node]>,
}

/// A node of a template or of an action.
#[derive(Debug, Clone, PartialEq)]
enum Node {
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
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether the end was omitted and follows from the start.
    end_is_derived: bool,
    step: Option<i64>,
}

/// `[?(left operator right)]`
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Node,
    operator: Box<str>,
    right: Node,
}

/// A value that a template selects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selected<'a> {
    /// A value of the object or of the template.
    Value(&'a Value),
    /// A byte of a text: wildcards split texts into bytes.
    Byte(u8),
}

/// The error of an evaluation that met an impossible step or exceeded its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CannotWalk;

impl JsonPath {
    /// Parses a template, such as `{.spec.replicas}`.
    ///
    /// # Errors
    /// The message of Kubernetes' parser.
    pub fn parse(template: &str) -> Result<JsonPath, String> {
        Ok(JsonPath { nodes: parser::parse(template)?.into() })
    }

    /// Parses the path of a column, of a selectable field or similar, which has no braces around it.
    ///
    /// # Errors
    /// The message of Kubernetes' parser.
    pub fn parse_path(path: &str) -> Result<JsonPath, String> {
        JsonPath::parse(&format!("{{{path}}}"))
    }

    /// Returns the values that each node of the template selects in an object. Nodes within a range yield one result
    /// per item.
    ///
    /// # Errors
    /// [`CannotWalk`] when a step is impossible on this object, or the work exceeds the bound.
    pub fn find<'a>(&'a self, object: &'a Value) -> Result<Vec<Vec<Selected<'a>>>, CannotWalk> {
        Evaluation::new(&mut MAX_WORK.clone()).find(&self.nodes, object)
    }

    /// The first value that the first node selects; `None` when there is none or the evaluation fails. A table's cell
    /// shows this value. Visits at most `work` values and subtracts the visited ones, so that several paths can share
    /// the budget.
    pub fn first_within<'a>(&'a self, object: &'a Value, work: &mut usize) -> Option<Selected<'a>> {
        Evaluation::new(work).find(&self.nodes, object).ok()?.first()?.first().copied()
    }

    /// As [`JsonPath::first_within`], with the full budget for one path.
    pub fn first<'a>(&'a self, object: &'a Value) -> Option<Selected<'a>> {
        self.first_within(object, &mut MAX_WORK.clone())
    }
}
