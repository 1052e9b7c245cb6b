//! Evaluates the match conditions of webhooks and policies
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions>).

mod metrics;

pub use metrics::ConditionMetrics;
pub(crate) use metrics::ConditionOwner;

use pintle_admission::Operation;
use pintle_admission_cel::{Input, MatchConditions, MatchOutcome, VariableSet, Variables};
use pintle_authorization::ExpressionAuthorizer;
use pintle_offload::Pace;
use std::time::Instant;

/// The match conditions of one webhook or policy.
#[derive(Clone, Copy)]
pub(crate) struct OwnedConditions<'a> {
    /// The name of the webhook or policy.
    pub(crate) name: &'a str,
    pub(crate) owner: ConditionOwner,
    pub(crate) conditions: &'a MatchConditions,
    /// The variables that the conditions may read.
    pub(crate) variables: &'a VariableSet,
}

impl OwnedConditions<'_> {
    /// Evaluates the conditions for a request with this operation, and waits for the permissions that they ask for. The
    /// outcome is never [`MatchOutcome::Undecided`].
    pub(crate) async fn evaluate(
        &self,
        input: &Input<'_>,
        authority: &ExpressionAuthorizer,
        operation: Operation,
        metrics: &ConditionMetrics,
        pace: &mut Pace,
    ) -> MatchOutcome {
        if self.conditions.is_empty() {
            return MatchOutcome::Holds;
        }
        let started = Instant::now();
        let outcome = loop {
            let outcome = {
                let variables = Variables::new(self.variables);
                self.conditions.evaluate(input, &variables, pace).await
            };
            match outcome {
                MatchOutcome::Undecided => authority.settle().await,
                outcome => break outcome,
            }
        };
        metrics.observe(self.name, self.owner, operation, &outcome, started.elapsed());
        outcome
    }

    /// Counts a webhook that is not called because its conditions do not hold.
    pub(crate) fn count_exclusion(&self, operation: Operation, metrics: &ConditionMetrics) {
        metrics.excluded(self.name, self.owner, operation);
    }
}
