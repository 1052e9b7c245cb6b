//! Evaluates the expressions of one request.

use crate::{EXPRESSION_BUDGET, Expression, Input, variables::Variables};
use pintle_cel::{Activation, EvaluationError, Value as CelValue, with_room_for};

/// An evaluation of expressions that share a budget, an input and the values of variables.
///
/// ```
/// use pintle_admission_cel::{Compiler, Evaluation, Input, OptionalVariables, POLICY_BUDGET, Returns, Variables};
///
/// let optional = OptionalVariables::default();
/// let mut compiler = Compiler::with_variables();
/// let variables = compiler.compile_variables([("replicas", "object.spec.replicas")], optional);
/// let expression = compiler.compile("variables.replicas < 5", optional, Returns::BOOL);
///
/// let object = serde_json::json!({"spec": {"replicas": 3}});
/// let input = Input { object: Some(&object), ..Input::default() };
/// let values = Variables::new(&variables);
/// let mut evaluation = Evaluation::new(&input, &values, POLICY_BUDGET);
/// assert_eq!(evaluation.evaluate(&expression).unwrap().as_bool(), Some(true));
/// ```
pub struct Evaluation<'p> {
    variables: &'p Variables<'p>,
    activation: &'p Activation<'p>,
    budget: u64,
}

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The expression does not compile, or its evaluation failed; other expressions are not affected.
    #[error("{0}")]
    Expression(String),
    /// The budget is exhausted: no further expression can be evaluated.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    OutOfBudget,
    /// The decision of an authorizer must be awaited, and the evaluation be repeated.
    #[error("{}", EvaluationError::Undecided)]
    Undecided,
}

impl<'p> Evaluation<'p> {
    /// Begins an evaluation with a budget. The input of the first evaluation with these variables counts.
    pub fn new(input: &Input<'p>, variables: &'p Variables<'p>, budget: u64) -> Evaluation<'p> {
        Evaluation { variables, activation: variables.activation(input), budget }
    }

    /// The rest of the budget.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// [`Failure`]; after [`Failure::OutOfBudget`] the budget is 0.
    pub fn evaluate(&mut self, expression: &'p Expression) -> Result<CelValue<'p>, Failure> {
        let program = expression
            .program()
            .map_err(|error| Failure::Expression(format!("compilation error: {error}")))?;
        let mut left = EXPRESSION_BUDGET;
        let activation = self.activation;
        let value = with_room_for(expression.nesting(), || program.evaluate(activation, &mut left))
            .unwrap_or_else(|error| Err(EvaluationError::Failed(error.to_string().into())));
        if value.as_ref().err() == Some(&EvaluationError::Undecided) {
            return Err(Failure::Undecided);
        }
        let cost = self.variables.take_cost().saturating_add(EXPRESSION_BUDGET - left);
        match self.budget.checked_sub(cost) {
            Some(rest) => self.budget = rest,
            None => {
                self.budget = 0;
                return Err(Failure::OutOfBudget);
            }
        }
        value.map_err(|error| {
            Failure::Expression(format!("expression '{}' resulted in error: {error}", expression.source()))
        })
    }
}
