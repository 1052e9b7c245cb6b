//! A compiled expression.

use crate::ast::CheckedAst;
use crate::evaluation_error::EvaluationError;
use crate::interpreter::{Activation, Plan};
use crate::stack::with_room;
use crate::types::Type;
use crate::value::Value;

/// An expression that has been parsed, checked and planned once, to be evaluated any number of times, by any number of
/// threads at once.
#[derive(Debug)]
pub struct Program {
    checked: CheckedAst,
    plan: Plan,
    /// Whether recursion over the plan may need more than the stack there is.
    deep: bool,
}

impl Program {
    pub(crate) fn new(checked: CheckedAst, deep: bool) -> Result<Program, String> {
        let plan = Plan::new(&checked)?;
        Ok(Program { checked, plan, deep })
    }

    /// The type of the result; `dyn` if that shows only when it is evaluated.
    pub fn result_type(&self) -> &Type {
        self.checked.result_type()
    }

    /// The checked tree.
    pub fn ast(&self) -> &CheckedAst {
        &self.checked
    }

    /// The weight of all patterns that are written out in the expression ([`crate::pattern::Pattern::weight`]).
    pub fn pattern_weight(&self) -> u64 {
        self.plan.pattern_weight()
    }

    /// The value of the expression for the variables given. What the evaluation costs is taken off the budget, which is
    /// 0 afterwards, and the evaluation an error, if it was not enough.
    pub fn evaluate<'a>(
        &'a self,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Value<'a>, EvaluationError> {
        with_room(self.deep, || self.plan.evaluate(activation, budget))
            .unwrap_or_else(|error| Err(EvaluationError::failed(error.to_string())))
    }
}
