//! Parses and evaluates label and field selectors.
//!
//! A selector is parsed once and then evaluated on many objects. Evaluation allocates nothing and reads labels and
//! fields through a function instead of a map.

mod compiled;
mod field_selector;
mod label_parser;
mod label_requirement;
mod label_selector;
mod lexer;

pub use field_selector::{FieldOperator, FieldSelector, FieldTerm};
pub use label_requirement::{LabelOperator, LabelRequirement};
pub use label_selector::{LabelSelector, format_label_selector};

/// The message for a malformed selector, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);
