//! A compiled expression.

use crate::ast::CheckedAst;
use crate::evaluation_error::EvaluationError;
use crate::interpreter::{Activation, Plan};
use crate::stack::with_room;
use crate::types::{Type, TypeProvider};
use crate::value::Value;

/// An expression that is parsed, checked and planned once, and can be evaluated any number of times, concurrently on
/// any number of threads.
#[derive(Debug)]
pub struct Program {
    checked: CheckedAst,
    plan: Plan,
    /// Whether recursion over the plan may overflow the current stack.
    deep: bool,
}

impl Program {
    pub(crate) fn new(
        checked: CheckedAst,
        provider: &dyn TypeProvider,
        deep: bool,
    ) -> Result<Program, String> {
        let plan = Plan::new(&checked, provider)?;
        Ok(Program { checked, plan, deep })
    }

    /// The type of the result; `dyn` if it is known only at run time.
    pub fn result_type(&self) -> &Type {
        self.checked.result_type()
    }

    /// The program without its checked tree, which only the analysis of an expression needs and which takes more memory
    /// than the plan.
    #[must_use]
    pub fn without_ast(self) -> Program {
        Program { checked: self.checked.only_result_type(), ..self }
    }

    /// The checked tree; empty after [`Program::without_ast`].
    pub fn ast(&self) -> &CheckedAst {
        &self.checked
    }

    /// The total weight of all literal patterns in the expression ([`crate::pattern::Pattern::weight`]).
    pub fn pattern_weight(&self) -> u64 {
        self.plan.pattern_weight()
    }

    /// An upper bound of the recursion of an evaluation ([`with_room_for`](crate::with_room_for)).
    pub fn nesting(&self) -> usize {
        self.checked.nesting()
    }

    /// Evaluates the expression with these variables. The cost is deducted from the budget.
    ///
    /// # Errors
    /// [`EvaluationError`], in particular when the cost exceeds the budget, which is then 0.
    pub fn evaluate<'a>(
        &'a self,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Value<'a>, EvaluationError> {
        with_room(self.deep, || self.plan.evaluate(activation, budget))
            .unwrap_or_else(|error| Err(EvaluationError::failed(error.to_string())))
    }
}
