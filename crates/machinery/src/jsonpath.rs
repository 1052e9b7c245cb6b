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
mod node;
mod parser;
#[cfg(test)]
mod tests;

use crate::Value;
use evaluate::{Evaluation, MAX_WORK};
use node::Node;

pub use evaluate::{CannotWalk, Selected};

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    nodes: Box<[Node]>,
}

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

    /// The field of the object to which the path leads, if it is a plain path of fields and indices: it selects nothing
    /// of other fields.
    pub fn first_field(&self) -> Option<&str> {
        let [Node::List(steps)] = &*self.nodes else { return None };
        let is_plain = |step: &Node| matches!(step, Node::Field(_) | Node::Slice(_));
        match steps.split_first()? {
            (Node::Field(name), rest) if rest.iter().all(is_plain) => Some(name),
            _ => None,
        }
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
