//! Rules after compilation.

use pintle_cel::Program;

/// A compiled rule.
#[derive(Debug, Default)]
pub struct CompiledRule {
    /// The compile error of the rule.
    pub error: Option<RuleError>,
    /// The program of the rule; `None` when the rule is empty or invalid.
    pub program: Option<Program>,
    /// Whether the rule is a transition rule: it uses `oldSelf`.
    pub uses_old_self: bool,
    /// The maximum cost of one run, by estimate.
    pub max_cost: u64,
    /// The maximum number of runs for one object, where the schema has no bound.
    pub max_cardinality: u64,
    /// The compile error of the message expression.
    pub message_expression_error: Option<RuleError>,
    /// The program of the message expression.
    pub message_expression: Option<Program>,
    /// The maximum cost of one message, by estimate.
    pub message_expression_max_cost: u64,
    /// The rule's `fieldPath`, normalized to be appended to the path of its position; empty for none.
    pub field_path: String,
}

/// A compile error: the detail of an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(pub(super) String);

impl RuleError {
    /// The message for clients.
    pub fn detail(&self) -> &str {
        &self.0
    }
}
