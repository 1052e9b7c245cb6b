//! JSONPath as Kubernetes knows it: the templates of printer columns, of selectable fields and of
//! `kubectl -o jsonpath` (<https://kubernetes.io/docs/reference/kubectl/jsonpath/>).
//!
//! A template is text with actions in braces. An action walks the object: fields (`.spec.x`, with `\.` for a dot in a
//! name, or `['x']`), list items and slices (`[0]`, `[-1:]`, `[0:4:2]`), unions (`['a','b']`), wildcards (`.*`, `[*]`),
//! filters (`[?(@.type=="Ready")]`), recursive descent (`..name`) and `range … end` over several actions. Keys that an
//! object does not have select nothing; a walk that cannot go on (an index past the end, a filter on what is no list) fails
//! as a whole. Both are as in the Go library that clients and kube-apiserver share, quirks of its grammar included: what one
//! of them reads, this reads in the same way.
//!
//! Templates come from definitions and so from clients: depth and work are bounded.

mod evaluate;
mod literal;
mod parser;
#[cfg(test)]
mod tests;

use crate::Value;
use evaluate::{Evaluation, MAX_WORK};

/// A template that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    nodes: Box<[Node]>,
}

/// A piece of a template or of an action.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// An action, or an operand: its nodes walk one after the other.
    List(Box<[Node]>),
    /// A text outside of actions, a quoted text, a number or a boolean: selects itself.
    Literal(Value),
    /// A member of an object.
    Field(Box<str>),
    /// All members or items.
    Wildcard,
    /// A value and everything below it.
    Recursive,
    /// Items of a list.
    Slice(Slice),
    /// The items of a list that pass.
    Filter(Box<Filter>),
    /// What several walks select, one after the other.
    Union(Box<[Node]>),
    /// `range`, `end`, or a word that means nothing.
    Identifier(Box<str>),
}

/// `[start:end:step]`; an index alone is a slice of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// The end was not written but follows from the start.
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

/// Something that a template selected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selected<'a> {
    /// A value of the object or of the template.
    Value(&'a Value),
    /// A byte of a text: wildcards take texts apart.
    Byte(u8),
}

/// A walk that could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CannotWalk;

impl JsonPath {
    /// Reads a template, such as `{.spec.replicas}`.
    ///
    /// # Errors
    /// What is wrong with it, in the words of Kubernetes' parser.
    pub fn parse(template: &str) -> Result<JsonPath, String> {
        Ok(JsonPath { nodes: parser::parse(template)?.into() })
    }

    /// Reads the path of a column, of a selectable field or the like, which has no braces around it.
    ///
    /// # Errors
    /// What is wrong with it, in the words of Kubernetes' parser.
    pub fn parse_path(path: &str) -> Result<JsonPath, String> {
        JsonPath::parse(&format!("{{{path}}}"))
    }

    /// What each piece of the template selects in an object. Pieces within a range come once an item.
    ///
    /// # Errors
    /// [`CannotWalk`] when a piece cannot be walked on this object, or would take far more work than any sensible one.
    pub fn find<'a>(&'a self, object: &'a Value) -> Result<Vec<Vec<Selected<'a>>>, CannotWalk> {
        Evaluation::new(&mut MAX_WORK.clone()).find(&self.nodes, object)
    }

    /// The first thing that the first piece selects; `None` when there is none or the walk fails. This is what a table's
    /// cell shows. Looks at `work` values at most and subtracts them, so that several paths can share the budget.
    pub fn first_within<'a>(&'a self, object: &'a Value, work: &mut usize) -> Option<Selected<'a>> {
        Evaluation::new(work).find(&self.nodes, object).ok()?.first()?.first().copied()
    }

    /// As [`JsonPath::first_within`], for a path by itself.
    pub fn first<'a>(&'a self, object: &'a Value) -> Option<Selected<'a>> {
        self.first_within(object, &mut MAX_WORK.clone())
    }
}
