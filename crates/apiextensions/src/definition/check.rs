//! The shared state of all schema checks in one definition.

use super::options::ValidationOptions;
use crate::structural::{Effort, rules::CompileEffort};

/// The shared state of all schema checks in one definition.
pub(super) struct Check<'o> {
    pub(super) options: &'o ValidationOptions,
    /// Whether schemas must be structural.
    pub(super) needs_structure: bool,
    /// The compile budget of the definition.
    pub(super) effort: CompileEffort,
    /// The checks of all defaults of the definition.
    pub(super) defaults_effort: Effort,
}
