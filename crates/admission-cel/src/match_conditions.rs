//! Match conditions: expressions that all must hold for a webhook to be called, or for a policy to apply.

use crate::{
    Compiler, Evaluation, Expression, Failure, Input, MATCH_CONDITIONS_BUDGET, OptionalVariables, Returns,
    Variables,
};
use pintle_cel::EnvironmentType;
use pintle_machinery::{Value, ValueExt, status::aggregate};
use pintle_offload::Pace;

/// The compiled match conditions of a webhook or a policy; an empty list holds.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    name: Box<str>,
    expression: Expression,
}

/// The result of match conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchOutcome {
    /// All conditions are true.
    Holds,
    /// This condition is false, whether or not others failed.
    Fails {
        /// The name of the condition.
        condition: Box<str>,
        /// The number of conditions before it that failed to evaluate.
        failed: u64,
    },
    /// No condition is false, but some have no value: the failure policy decides.
    Error {
        /// The message of all errors.
        message: String,
        /// The number of conditions that failed to evaluate.
        failed: u64,
    },
    /// The decision of an authorizer must be awaited, and the evaluation be repeated.
    Undecided,
}

impl MatchConditions {
    /// Compiles a list of stored objects with `name` and `expression`.
    pub fn compile(
        compiler: &Compiler,
        conditions: &[Value],
        optional: OptionalVariables,
    ) -> MatchConditions {
        let compiled = conditions.iter().map(|condition| Condition {
            name: condition.str_at("name").into(),
            expression: compiler.compile(
                condition.str_at("expression"),
                EnvironmentType::StoredExpressions,
                optional,
                Returns::BOOL,
            ),
        });
        MatchConditions(compiled.collect())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the conditions. `namespaceObject` is always null in them, whatever the input has, and `request` is
    /// [`Input::condition_request`] if there is one.
    pub async fn evaluate<'p>(
        &'p self,
        input: &Input<'p>,
        variables: &'p Variables<'p>,
        pace: &mut Pace,
    ) -> MatchOutcome {
        let request = input.condition_request.or(input.request);
        let input = Input { namespace: None, request, ..input.clone() };
        let mut evaluation = Evaluation::new(&input, variables, MATCH_CONDITIONS_BUDGET, pace);
        let mut false_condition = None;
        let mut errors = Vec::new();
        for Condition { name, expression } in &self.0 {
            match evaluation.evaluate(expression).await {
                Ok(value) if value.as_bool() == Some(false) && false_condition.is_none() => {
                    false_condition = Some((name.clone(), errors.len() as u64));
                }
                Ok(_) => {}
                Err(Failure::Expression(message)) => errors.push(message),
                Err(error @ Failure::OutOfBudget) => {
                    return MatchOutcome::Error { message: error.to_string(), failed: 0 };
                }
                Err(Failure::Undecided) => return MatchOutcome::Undecided,
            }
        }
        if let Some((condition, failed)) = false_condition {
            return MatchOutcome::Fails { condition, failed };
        }
        match errors.len() as u64 {
            0 => MatchOutcome::Holds,
            failed => MatchOutcome::Error { message: aggregate(errors.into_iter()), failed },
        }
    }
}
