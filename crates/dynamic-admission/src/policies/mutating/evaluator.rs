//! The compiled expressions of a mutating policy.

use super::patch::{Mutation, MutationError, Patch};
use crate::{
    conditions::{ConditionOwner, OwnedConditions},
    policies::hooks::Evaluator,
};
use pintle_admission_cel::{
    Compiler, EnvironmentType, Evaluation, Input, MatchConditions, OptionalVariables, POLICY_BUDGET, Returns,
    VariableSet, Variables,
};
use pintle_machinery::{Value, ValueExt};
use pintle_offload::Pace;

/// The compiled expressions of a mutating policy.
pub(super) struct MutatingEvaluator {
    variables: VariableSet,
    conditions: MatchConditions,
    mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`
    is_reinvocable: bool,
}

impl Evaluator for MutatingEvaluator {
    fn compile(policy: &Value) -> MutatingEvaluator {
        let optional = OptionalVariables { params: policy.at("spec.paramKind").is_some(), authorizer: true };
        let mut compiler = Compiler::with_variables();
        let variables = policy.items_at("spec.variables").iter();
        let variables = variables.map(|variable| (variable.str_at("name"), variable.str_at("expression")));
        let variables = compiler.compile_variables(variables, optional);
        let mutations = policy.items_at("spec.mutations").iter().filter_map(|mutation| {
            let compile = |field: &str, returns| {
                let expression = mutation.at(field)?.str_at("expression");
                Some(compiler.compile_mutation(
                    expression,
                    EnvironmentType::StoredExpressions,
                    optional,
                    returns,
                ))
            };
            match mutation.str_at("patchType") {
                "JSONPatch" => compile("jsonPatch", Returns::json_patch()).map(Mutation::JsonPatch),
                "ApplyConfiguration" => {
                    compile("applyConfiguration", Returns::configuration()).map(Mutation::ApplyConfiguration)
                }
                _ => None,
            }
        });
        MutatingEvaluator {
            mutations: mutations.collect(),
            conditions: MatchConditions::compile(
                &compiler,
                policy.items_at("spec.matchConditions"),
                optional,
            ),
            is_reinvocable: policy.str_at("spec.reinvocationPolicy") == "IfNeeded",
            variables,
        }
    }
}

impl MutatingEvaluator {
    /// The number of mutations.
    pub(super) fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether the policy is called again when others have changed the object after it.
    pub(super) fn is_reinvocable(&self) -> bool {
        self.is_reinvocable
    }

    /// The match conditions of the policy, which has this name.
    pub(super) fn conditions<'a>(&'a self, name: &'a str) -> OwnedConditions<'a> {
        let (conditions, variables) = (&self.conditions, &self.variables);
        OwnedConditions { name, owner: ConditionOwner::Policy, conditions, variables }
    }

    /// Evaluates one of the mutations. Each has a budget of its own, and sees the changes of those before it.
    ///
    /// # Errors
    /// As [`Mutation::evaluate`].
    pub(super) async fn patch(
        &self,
        index: usize,
        input: &Input<'_>,
        pace: &mut Pace,
    ) -> Result<Option<Patch>, MutationError> {
        let Some(mutation) = self.mutations.get(index) else { return Ok(None) };
        let variables = Variables::new(&self.variables);
        let mut evaluation = Evaluation::new(input, &variables, POLICY_BUDGET, pace);
        mutation.evaluate(&mut evaluation).await.map(Some)
    }
}
