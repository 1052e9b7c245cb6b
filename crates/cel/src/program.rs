//! A compiled expression.

use crate::ast::CheckedAst;
use crate::evaluation_error::EvaluationError;
use crate::interpreter::{Activation, Plan};
use crate::types::Type;
use crate::value::Value;

/// An expression that has been parsed, checked and planned once, to be evaluated any number of times, by any number of
/// threads at once.
#[derive(Debug)]
pub struct Program {
    checked: CheckedAst,
    plan: Plan,
}

impl Program {
    pub(crate) fn new(checked: CheckedAst) -> Result<Program, String> {
        let plan = Plan::new(&checked)?;
        Ok(Program { checked, plan })
    }

    /// The type of the result; `dyn` if that shows only when it is evaluated.
    pub fn result_type(&self) -> &Type {
        self.checked.result_type()
    }

    /// The checked tree.
    pub fn ast(&self) -> &CheckedAst {
        &self.checked
    }

    /// The value of the expression for the variables given. What the evaluation costs is taken off the budget, which is
    /// 0 afterwards, and the evaluation an error, if it was not enough.
    pub fn evaluate<'a>(
        &'a self,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Value<'a>, EvaluationError> {
        self.plan.evaluate(activation, budget)
    }
}
