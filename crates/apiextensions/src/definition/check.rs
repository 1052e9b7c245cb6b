//! The shared state of all schema checks in one definition.

use super::options::ValidationOptions;
use crate::structural::{Effort, StructuralSchema, rules::CompileEffort};
use std::cell::Cell;

/// The shared state of all schema checks in one definition.
pub(super) struct Check<'o> {
    pub(super) options: &'o ValidationOptions,
    /// Whether schemas must be structural.
    pub(super) needs_structure: bool,
    /// The compile budget of the definition.
    pub(super) effort: CompileEffort,
    /// The checks of all defaults of the definition.
    pub(super) defaults_effort: Effort,
    /// The remaining cost budget of rules on all defaults of the definition; `None` once it was exhausted.
    pub(super) defaults_budget: Cell<Option<u64>>,
}

impl Check<'_> {
    pub(super) fn new(options: &ValidationOptions, needs_structure: bool) -> Check<'_> {
        Check {
            options,
            needs_structure,
            effort: CompileEffort::new(),
            defaults_effort: Effort::new(),
            defaults_budget: Cell::new(Some(StructuralSchema::DEFAULTS_BUDGET)),
        }
    }
}
