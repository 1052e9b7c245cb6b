//! The CEL environment of admission: of policies, and of the match conditions of webhooks
//! (<https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#validation-expression>).
//!
//! A [`Compiler`] compiles expressions with the variables `object`, `oldObject`, `request`, `namespaceObject`, and, if
//! declared, `params`, `authorizer`, `authorizer.requestResource` and `variables`. An [`Evaluation`] evaluates them for
//! one request within a budget: objects are read in place, and each of `variables` is evaluated when it is first read.
//! The crate knows no HTTP, no storage and no chain of plugins.

mod compile_error;
mod compiler;
mod effort;
mod evaluation;
mod expression;
mod input;
mod match_conditions;
mod request;
mod types;
mod variables;

pub use compile_error::CompileError;
pub use compiler::{Compiler, OptionalVariables, Returns};
pub use evaluation::{Evaluation, Failure};
pub use expression::Expression;
pub use input::Input;
pub use match_conditions::{MatchConditions, MatchOutcome};
pub use pintle_cel::EnvironmentType;
pub use request::{RequestAttributes, request_resource};
pub use variables::{Variable, VariableSet, Variables};

/// The cost limit of one expression.
pub const EXPRESSION_BUDGET: u64 = 1_000_000;
/// The cost budget of all validations, or of all audit annotations, of a policy for one set of parameters.
pub const POLICY_BUDGET: u64 = 10_000_000;
/// The cost budget of all match conditions of a webhook or policy.
pub const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

#[cfg(test)]
mod tests;
