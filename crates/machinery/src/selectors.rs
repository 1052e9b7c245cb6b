//! Selectors: what a client asks of labels and fields.
//!
//! Both kinds are parsed once and then matched against many objects, so matching allocates nothing and asks for labels
//! and fields through a function instead of a map.

mod compiled;
mod field_selector;
mod label_selector;
mod lexer;

pub use field_selector::{FieldOperator, FieldSelector, FieldTerm};
pub use label_selector::{LabelOperator, LabelRequirement, LabelSelector, format_label_selector};

/// Why a text or an object is no selector, in the words clients see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);
