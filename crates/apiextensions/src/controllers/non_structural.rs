//! Sets the condition that lists the structural violations of a definition stored by an old server. Such a definition
//! can no longer be written.

use super::{Context, Controller, condition};
use crate::{
    definition::{Violations, violations},
    informer::Change,
};
use pintle_machinery::{Status, ValueExt};
use pintle_registry::BoxFuture;

const CONDITION: &str = "NonStructuralSchema";

pub(crate) struct NonStructural(pub(crate) Context);

impl Controller for NonStructural {
    fn name(&self) -> &'static str {
        "non-structural-schema"
    }

    fn queue_name(&self) -> &'static str {
        "non_structural_schema_condition_controller"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let Some(now) = &change.now else { return Vec::new() };
        let has_condition = now.condition(CONDITION).is_some();
        let is_due = match now.spec.preserve_unknown_fields {
            false => has_condition,
            true => {
                let before = change.before.as_ref().map(|before| before.metadata.generation);
                !has_condition || before != Some(now.metadata.generation)
            }
        };
        is_due.then(|| change.name().to_owned()).into_iter().collect()
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.0.update_status(name, |mut definition| {
            let Some(Violations { status, reason, message }) = violations(&definition) else {
                condition::remove(&mut definition, CONDITION);
                return Ok(definition);
            };
            let says = condition::Says { condition_type: CONDITION, status, reason, message: &message };
            let is_said = condition::find(&definition, CONDITION).is_some_and(|old| {
                old.str_at("status") == status
                    && old.str_at("reason") == reason
                    && old.str_at("message") == message
            });
            if !is_said {
                condition::set(&mut definition, says);
            }
            Ok(definition)
        }))
    }
}
