//! Evaluation: a checked expression is planned once, and the plan evaluated as often as wanted.
//!
//! Planning resolves names to slots and functions to code, folds constants and compiles patterns. Evaluation counts what
//! it does exactly as the reference counts it (<https://github.com/google/cel-go>, `interpreter/runtimecost.go`, and
//! Kubernetes' additions), since the limits on cost are part of the API.

mod activation;
mod cost;
mod evaluate;
mod plan;
mod planner;

pub use activation::Activation;

pub(crate) use plan::Plan;
