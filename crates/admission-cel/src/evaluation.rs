//! Evaluates the expressions of one request.

use crate::{
    Expression, Input,
    effort::{Effort, WORK_PER_COST},
    variables::Variables,
};
use pintle_cel::{Activation, EvaluationError, Value as CelValue, WorkLimit, with_room_for};
use pintle_offload::{Pace, is_on_worker, leave_worker};

/// An evaluation of expressions that share a budget, an input and the values of variables.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use pintle_admission_cel::{
///     Compiler, EnvironmentType, Evaluation, Input, OptionalVariables, POLICY_BUDGET, Returns, Variables,
/// };
/// use pintle_offload::Pace;
///
/// let optional = OptionalVariables::default();
/// let mut compiler = Compiler::with_variables();
/// let variables = compiler.compile_variables([("replicas", "object.spec.replicas")], optional);
/// let stored = EnvironmentType::StoredExpressions;
/// let expression = compiler.compile("variables.replicas < 5", stored, optional, Returns::BOOL);
///
/// let object = pintle_machinery::json!({"spec": {"replicas": 3}});
/// let input = Input { object: Some(&object), ..Input::default() };
/// let values = Variables::new(&variables);
/// let mut pace = Pace::new();
/// let mut evaluation = Evaluation::new(&input, &values, POLICY_BUDGET, &mut pace);
/// assert_eq!(evaluation.evaluate(&expression).await.unwrap().as_bool(), Some(true));
/// # });
/// ```
pub struct Evaluation<'p, 'w> {
    variables: &'p Variables<'p>,
    activation: &'p Activation<'p>,
    budget: u64,
    /// The number of items that may still be visited.
    work: u64,
    /// Other requests run between the expressions.
    pace: &'w mut Pace,
}

/// The error of an attempt with [`Effort::Light`] that needs more.
struct Heavy;

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

impl<'p, 'w> Evaluation<'p, 'w> {
    /// Begins an evaluation with a budget. The input of the first evaluation with these variables counts.
    pub fn new(
        input: &Input<'p>,
        variables: &'p Variables<'p>,
        budget: u64,
        pace: &'w mut Pace,
    ) -> Evaluation<'p, 'w> {
        let work = budget.saturating_mul(WORK_PER_COST);
        Evaluation { variables, activation: variables.activation(input), budget, work, pace }
    }

    /// The rest of the budget.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Evaluates an expression. Before it, other requests run if it is their turn; an expression that takes long makes
    /// the request leave the workers ([`leave_worker`]).
    ///
    /// # Errors
    /// [`Failure`]; after [`Failure::OutOfBudget`] the budget is 0.
    pub async fn evaluate(&mut self, expression: &'p Expression) -> Result<CelValue<'p>, Failure> {
        self.pace.breathe().await;
        if is_on_worker() {
            match self.attempt(expression, Effort::Light) {
                Ok(result) => return result,
                Err(Heavy) => leave_worker().await,
            }
        }
        self.attempt(expression, Effort::Full)
            .unwrap_or_else(|Heavy| Err(Failure::Expression(EvaluationError::CostLimitExceeded.to_string())))
    }

    /// Evaluates an expression once. [`Heavy`] is no result: only values of variables remain of it, with their cost.
    fn attempt(
        &mut self,
        expression: &'p Expression,
        effort: Effort,
    ) -> Result<Result<CelValue<'p>, Failure>, Heavy> {
        let program = match expression.program() {
            Ok(program) => program,
            Err(error) => return Ok(Err(Failure::Expression(format!("compilation error: {error}")))),
        };
        let mut left = effort.cost();
        let activation = self.activation;
        self.variables.begin(effort);
        let work = effort.work(self.work);
        let evaluated = with_room_for(expression.nesting(), || {
            let limit = WorkLimit::new(work);
            let value = program.evaluate(activation, &mut left);
            (value, limit.remaining())
        });
        let (value, rest) =
            evaluated.unwrap_or_else(|error| (Err(EvaluationError::Failed(error.to_string().into())), work));
        match value {
            Err(EvaluationError::Undecided) => return Ok(Err(Failure::Undecided)),
            Err(EvaluationError::CostLimitExceeded) if effort == Effort::Light => return Err(Heavy),
            _ => {}
        }
        self.work = self.work.saturating_sub(work - rest);
        let cost = self.variables.take_cost().saturating_add(effort.cost() - left);
        match self.budget.checked_sub(cost) {
            Some(rest) if self.work > 0 => self.budget = rest,
            _ => {
                self.budget = 0;
                return Ok(Err(Failure::OutOfBudget));
            }
        }
        Ok(value.map_err(|error| {
            Failure::Expression(format!("expression '{}' resulted in error: {error}", expression.source()))
        }))
    }
}
