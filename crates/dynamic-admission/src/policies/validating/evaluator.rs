//! The compiled expressions of a validating policy, and their evaluation.

use super::decision::{Annotation, Decision, Results, Verdict};
use crate::{
    conditions::{ConditionOwner, OwnedConditions},
    policies::hooks::Evaluator,
};
use pintle_admission_cel::{
    Compiler, EnvironmentType, Evaluation, Expression, Failure, Input, MatchConditions, MatchOutcome,
    OptionalVariables, POLICY_BUDGET, Returns, VariableSet, Variables,
};
use pintle_cel::Value as CelValue;
use pintle_machinery::{StatusReason, Value, ValueExt};
use pintle_offload::Pace;
use std::time::{Duration, Instant};

/// The environment of the expressions of a policy that is in force.
const STORED: EnvironmentType = EnvironmentType::StoredExpressions;
/// The maximum size of a message from an expression, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// The compiled expressions of a validating policy.
pub(super) struct ValidatingEvaluator {
    ignores_failures: bool,
    variables: VariableSet,
    conditions: MatchConditions,
    validations: Vec<Validation>,
    annotations: Vec<AuditAnnotation>,
}

struct Validation {
    expression: Expression,
    message: Box<str>,
    message_expression: Option<Expression>,
    reason: StatusReason,
}

struct AuditAnnotation {
    key: Box<str>,
    value: Expression,
}

/// The decision of an authorizer must be awaited, and the evaluation be repeated.
#[derive(Debug, PartialEq)]
pub(super) struct Undecided;

impl Evaluator for ValidatingEvaluator {
    fn compile(policy: &Value) -> ValidatingEvaluator {
        let params = policy.at("spec.paramKind").is_some();
        let optional = OptionalVariables { params, authorizer: true };
        let mut compiler = Compiler::with_variables();
        let variables = policy.items_at("spec.variables").iter();
        let variables = variables.map(|variable| (variable.str_at("name"), variable.str_at("expression")));
        let variables = compiler.compile_variables(variables, optional);
        let validations = policy.items_at("spec.validations").iter().map(|validation| {
            let message_expression = validation.str_at("messageExpression");
            let without = OptionalVariables { params, authorizer: false };
            Validation {
                expression: compiler.compile(
                    validation.str_at("expression"),
                    STORED,
                    optional,
                    Returns::BOOL,
                ),
                message: validation.str_at("message").trim().into(),
                message_expression: (!message_expression.is_empty())
                    .then(|| compiler.compile(message_expression, STORED, without, Returns::STRING)),
                reason: match validation.str_at("reason") {
                    "Forbidden" => StatusReason::Forbidden,
                    "Unauthorized" => StatusReason::Unauthorized,
                    "RequestEntityTooLarge" => StatusReason::RequestEntityTooLarge,
                    _ => StatusReason::Invalid,
                },
            }
        });
        let annotations = policy.items_at("spec.auditAnnotations").iter().map(|annotation| AuditAnnotation {
            key: annotation.str_at("key").into(),
            value: compiler.compile(
                annotation.str_at("valueExpression"),
                STORED,
                optional,
                Returns::STRING_OR_NULL,
            ),
        });
        ValidatingEvaluator {
            ignores_failures: policy.str_at("spec.failurePolicy") == "Ignore",
            validations: validations.collect(),
            annotations: annotations.collect(),
            conditions: MatchConditions::compile(
                &compiler,
                policy.items_at("spec.matchConditions"),
                optional,
            ),
            variables,
        }
    }
}

impl ValidatingEvaluator {
    /// The match conditions of the policy, which has this name.
    pub(super) fn conditions<'a>(&'a self, name: &'a str) -> OwnedConditions<'a> {
        let (conditions, variables) = (&self.conditions, &self.variables);
        OwnedConditions { name, owner: ConditionOwner::Policy, conditions, variables }
    }

    /// The results of a policy whose match conditions do not hold; `None` if they do.
    pub(super) fn unmatched(&self, outcome: MatchOutcome) -> Option<Results> {
        match outcome {
            MatchOutcome::Holds => None,
            MatchOutcome::Error { message, .. } if !self.ignores_failures => {
                Some(self.failed(message, Duration::ZERO))
            }
            MatchOutcome::Fails { .. } | MatchOutcome::Error { .. } | MatchOutcome::Undecided => {
                Some(Results::default())
            }
        }
    }

    /// Evaluates the policy for a request for which its match conditions hold.
    ///
    /// # Errors
    /// [`Undecided`], after which the evaluation must be repeated.
    pub(super) async fn evaluate(&self, input: &Input<'_>, pace: &mut Pace) -> Result<Results, Undecided> {
        let mut budget = POLICY_BUDGET;
        let mut evaluations = Vec::with_capacity(self.validations.len());
        {
            let variables = Variables::new(&self.variables);
            let mut evaluation = Evaluation::new(input, &variables, budget, pace);
            for validation in &self.validations {
                let started = Instant::now();
                let holds = match evaluation.evaluate(&validation.expression).await {
                    Ok(value) => Ok(value.as_bool() == Some(true)),
                    Err(Failure::Expression(message)) => Err(message),
                    Err(error @ Failure::OutOfBudget) => {
                        return Ok(self.failed(error.to_string(), started.elapsed()));
                    }
                    Err(Failure::Undecided) => return Err(Undecided),
                };
                evaluations.push((holds, started.elapsed()));
            }
            budget = evaluation.budget();
        }
        // Expressions that read the authorizer here have no value.
        let input = Input { authorizer: None, ..input.clone() };
        let messages = self.messages(&input, budget, pace).await?;
        let decide = |(index, (holds, elapsed)): (usize, (Result<bool, String>, Duration))| {
            let message = match (holds, &messages) {
                (Err(message), _) => return Decision::error(message, self.ignores_failures, elapsed),
                (Ok(_), Err(error)) => {
                    let message = format!("failed messageExpression: {error}");
                    return Decision::error(message, self.ignores_failures, elapsed);
                }
                (Ok(true), Ok(_)) => return Decision::holds(elapsed),
                (Ok(false), Ok(messages)) => messages.get(index).cloned().flatten(),
            };
            let validation = self.validations.get(index);
            let reason = validation.map_or(StatusReason::Invalid, |validation| validation.reason);
            let message = message.or_else(|| validation.map(Validation::static_message)).unwrap_or_default();
            Decision { verdict: Verdict::Fails(reason), message, elapsed }
        };
        let decisions = evaluations.into_iter().enumerate().map(decide).collect();
        match self.annotations_of(&input, pace).await? {
            Ok(annotations) => Ok(Results { decisions, annotations }),
            Err(error) => Ok(self.failed(error, Duration::ZERO)),
        }
    }

    /// The results of a policy that cannot be evaluated as a whole.
    fn failed(&self, message: String, elapsed: Duration) -> Results {
        let decision = Decision::error(message, self.ignores_failures, elapsed);
        Results { decisions: vec![decision], annotations: Vec::new() }
    }

    /// The messages from expressions, by position; an error when the budget is exhausted.
    async fn messages(
        &self,
        input: &Input<'_>,
        budget: u64,
        pace: &mut Pace,
    ) -> Result<Result<Vec<Option<String>>, String>, Undecided> {
        if self.validations.iter().all(|validation| validation.message_expression.is_none()) {
            return Ok(Ok(Vec::new()));
        }
        let variables = Variables::new(&self.variables);
        let mut evaluation = Evaluation::new(input, &variables, budget, pace);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let Some(expression) = &validation.message_expression else {
                messages.push(None);
                continue;
            };
            match evaluation.evaluate(expression).await {
                Ok(value) => messages.push(value.as_str().and_then(usable_message)),
                Err(Failure::Expression(_)) => messages.push(None),
                Err(error @ Failure::OutOfBudget) => return Ok(Err(error.to_string())),
                Err(Failure::Undecided) => return Err(Undecided),
            }
        }
        Ok(Ok(messages))
    }

    async fn annotations_of(
        &self,
        input: &Input<'_>,
        pace: &mut Pace,
    ) -> Result<Result<Vec<Annotation>, String>, Undecided> {
        if self.annotations.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let variables = Variables::new(&self.variables);
        let mut evaluation = Evaluation::new(input, &variables, POLICY_BUDGET, pace);
        let mut annotations = Vec::new();
        for annotation in &self.annotations {
            let started = Instant::now();
            match evaluation.evaluate(&annotation.value).await {
                Ok(CelValue::String(value)) if !value.trim().is_empty() => {
                    let value = value.trim().to_owned();
                    annotations.push(Annotation::Publish { key: annotation.key.clone(), value });
                }
                Ok(_) => {}
                Err(Failure::Expression(_)) if self.ignores_failures => {}
                Err(Failure::Expression(message)) => {
                    annotations.push(Annotation::Error { message, elapsed: started.elapsed() });
                }
                Err(error @ Failure::OutOfBudget) => return Ok(Err(error.to_string())),
                Err(Failure::Undecided) => return Err(Undecided),
            }
        }
        Ok(Ok(annotations))
    }
}

impl Validation {
    /// The message of a failed validation without a message from an expression.
    fn static_message(&self) -> String {
        match self.message.is_empty() {
            false => self.message.clone().into(),
            true => format!("failed expression: {}", self.expression.source().trim()),
        }
    }
}

/// The message without spaces around it; `None` if it is empty, too long, or of several lines.
fn usable_message(message: &str) -> Option<String> {
    let message = message.trim();
    (!message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n'))
        .then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn evaluate(spec: &Value, object: &Value) -> Results {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let input = Input { object: Some(object), ..Input::default() };
        let evaluator = ValidatingEvaluator::compile(&policy);
        let variables = Variables::new(&evaluator.variables);
        let results = async {
            let mut pace = Pace::new();
            let matched = evaluator.conditions.evaluate(&input, &variables, &mut pace).await;
            match evaluator.unmatched(matched) {
                Some(results) => results,
                None => evaluator.evaluate(&input, &mut Pace::new()).await.expect("no authorizer is asked"),
            }
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(results)
    }

    /// The verdicts and messages.
    fn decisions(spec: &Value, object: &Value) -> Vec<(Verdict, String)> {
        let decisions = evaluate(spec, object).decisions.into_iter();
        decisions.map(|decision| (decision.verdict, decision.message)).collect()
    }

    fn invalid(message: &str) -> (Verdict, String) {
        (Verdict::Fails(StatusReason::Invalid), message.to_owned())
    }

    fn error(message: &str) -> (Verdict, String) {
        (Verdict::Error, message.to_owned())
    }

    #[test]
    fn failures_have_the_first_usable_message() {
        let check = |validation: Value, expected: (Verdict, String)| {
            let mut validation = validation;
            validation.set("expression", " object.a == 2\n");
            let found = decisions(&json!({"validations": [validation]}), &json!({"a": 1}));
            assert_eq!(found, [expected], "{validation}");
        };
        check(json!({}), invalid("failed expression: object.a == 2"));
        check(json!({"message": " text "}), invalid("text"));
        let expression = "'a is ' + string(object.a) + ' '";
        check(json!({"message": "text", "messageExpression": expression}), invalid("a is 1"));
        for unusable in ["object.none", "'  '", "'a\\nb'", "1"] {
            check(json!({"message": "text", "messageExpression": unusable}), invalid("text"));
        }
        let reason = StatusReason::RequestEntityTooLarge;
        check(
            json!({"message": "text", "reason": "RequestEntityTooLarge"}),
            (Verdict::Fails(reason), "text".to_owned()),
        );
    }

    #[test]
    fn match_conditions_decide_whether_a_policy_applies() {
        let spec = |condition: &str, failure_policy: &str| {
            json!({
                "failurePolicy": failure_policy,
                "matchConditions": [{"name": "c", "expression": condition}],
                "validations": [{"expression": "false", "message": "m"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
            })
        };
        let object = json!({"a": 1});
        assert_eq!(decisions(&spec("object.a == 1", "Fail"), &object), [invalid("m")]);
        assert_eq!(evaluate(&spec("object.a == 2", "Fail"), &object), Results::default());
        let missing = "expression 'object.b == 2' resulted in error: no such key: b";
        assert_eq!(decisions(&spec("object.b == 2", "Fail"), &object), [error(missing)]);
        assert_eq!(evaluate(&spec("object.b == 2", "Ignore"), &object), Results::default());
    }

    #[test]
    fn expressions_that_do_not_compile_fail() {
        let found = decisions(&json!({"validations": [{"expression": "nope"}]}), &Value::Null);
        let [(Verdict::Error, message)] = found.as_slice() else { panic!("{found:?}") };
        assert!(
            message.starts_with("compilation error: compilation failed: ERROR: <input>:1:1: "),
            "{message}"
        );
        let ignored = json!({"failurePolicy": "Ignore", "validations": [{"expression": "nope"}]});
        assert_eq!(decisions(&ignored, &Value::Null)[0].0, Verdict::IgnoredError);
    }

    #[test]
    fn costs_end_expressions_and_policies() {
        let object = json!({"items": (0..1000).collect::<Vec<_>>()});
        let squared = "object.items.all(x, object.items.all(y, x != y || true))";
        let found =
            decisions(&json!({"validations": [{"expression": squared}, {"expression": "true"}]}), &object);
        let limit = "operation cancelled: actual cost limit exceeded";
        assert_eq!(found[0], error(&format!("expression '{squared}' resulted in error: {limit}")));
        assert_eq!(found[1].0, Verdict::Holds);
        // Each of them is within its limit, all together are not.
        let many: Vec<Value> = (0..12).map(|_| json!({"expression": squared})).collect();
        let found = decisions(&json!({"validations": many}), &object);
        let budget =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        assert_eq!(found, [error(budget)]);
    }

    #[test]
    fn deep_objects_are_read_within_the_limits() {
        let mut object = json!({"leaf": true});
        for _ in 0..500 {
            object = json!({"a": object});
        }
        let expression = "object == object && !has(object.b)";
        let found = decisions(&json!({"validations": [{"expression": expression}]}), &object);
        assert_eq!(found[0].0, Verdict::Holds, "{found:?}");
    }

    #[test]
    fn annotations_are_published_or_left_out() {
        let annotations = |value: &str, failure_policy: &str| {
            let spec = json!({
                "failurePolicy": failure_policy,
                "auditAnnotations": [{"key": "k", "valueExpression": value}],
            });
            evaluate(&spec, &json!({"a": "x"})).annotations
        };
        let value = |value: &str| vec![Annotation::Publish { key: "k".into(), value: value.to_owned() }];
        assert_eq!(annotations("' ' + object.a", "Fail"), value("x"));
        assert_eq!(annotations("null", "Fail"), []);
        assert_eq!(annotations("' '", "Fail"), []);
        assert_eq!(annotations("string(object.b)", "Ignore"), []);
        assert!(matches!(annotations("string(object.b)", "Fail").as_slice(), [Annotation::Error { .. }]));
    }
}
