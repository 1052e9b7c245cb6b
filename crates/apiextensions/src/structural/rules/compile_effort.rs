//! Bounds the work of compiling a definition.

use super::compiled_rule::CompiledRule;
use crate::structural::Rule;
use pintle_cel::pattern;
use std::cell::Cell;

/// The compile budget: characters of expressions, weight of patterns, and characters of error messages.
const MAX_COMPILED: u64 = 8_000_000;
/// The cost of one position of a pattern, in characters of expressions.
const PLACE: u64 = 8;

/// The remaining budget for compiling the rules and patterns of one definition, or of one schema at run time.
#[derive(Debug)]
pub struct CompileEffort(Cell<u64>);

impl Default for CompileEffort {
    fn default() -> CompileEffort {
        CompileEffort::new()
    }
}

impl CompileEffort {
    /// The error message when the budget is spent.
    pub const SPENT: &str = "the rules and patterns of the schema take too long to compile";

    /// The whole budget.
    pub fn new() -> CompileEffort {
        CompileEffort(Cell::new(MAX_COMPILED))
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Counts a pattern of a schema before it is compiled. Returns whether any budget is left.
    pub(crate) fn pattern(&self, pattern: &str) -> bool {
        if !pattern.is_empty() {
            self.spend((pattern.len() as u64).saturating_add(pattern::weight(pattern).saturating_mul(PLACE)));
        }
        !self.is_spent()
    }

    /// Counts a rule.
    pub(super) fn rule(&self, rule: &Rule, compiled: &CompiledRule) {
        let errors = [&compiled.error, &compiled.message_expression_error];
        let errors: usize = errors.into_iter().flatten().map(|error| error.detail().len()).sum();
        let programs = [&compiled.program, &compiled.message_expression];
        let patterns: u64 = programs.into_iter().flatten().map(|program| program.pattern_weight()).sum();
        let texts = rule.rule.len() + rule.message_expression.len() + errors;
        self.spend((texts as u64).saturating_add(patterns.saturating_mul(PLACE)));
    }

    fn spend(&self, amount: u64) {
        self.0.set(self.0.get().saturating_sub(amount));
    }
}
