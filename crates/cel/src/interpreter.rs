//! Evaluation: a checked expression is planned once, and the plan can be evaluated any number of times.
//!
//! Planning resolves names to slots and functions to code, folds constants and compiles patterns. Evaluation counts
//! cost exactly as the reference does (<https://github.com/google/cel-go>, `interpreter/runtimecost.go`, and
//! Kubernetes' additions), since cost limits are part of the API.

mod activation;
mod cost;
mod evaluate;
mod plan;
mod planner;

pub use activation::Activation;

pub(crate) use plan::Plan;
