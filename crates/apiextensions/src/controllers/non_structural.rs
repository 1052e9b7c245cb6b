//! Says of a definition that an old server stored what its schema lacks to be structural. No such definition can be
//! written any more.

use super::{Context, Controller, condition};
use crate::{definition_view::Definition, informer::Change};
use pintle_machinery::Status;
use pintle_registry::BoxFuture;

const CONDITION: &str = "NonStructuralSchema";

pub(crate) struct NonStructural(pub(crate) Context);

/// What is wrong, if anything is.
fn violations(definition: &Definition) -> Option<String> {
    definition
        .spec
        .preserve_unknown_fields
        .then(|| "spec.preserveUnknownFields: Invalid value: true: must be false".to_owned())
}

fn is_due(definition: &Definition) -> bool {
    match (violations(definition), definition.condition(CONDITION)) {
        (None, None) => false,
        (Some(message), Some(old)) => old.message != message,
        _ => true,
    }
}

impl Controller for NonStructural {
    fn name(&self) -> &'static str {
        "non-structural-schema"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let is_due = change.now.as_ref().is_some_and(|now| is_due(now));
        is_due.then(|| change.name().to_owned()).into_iter().collect()
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(definition) = self.0.definitions.get(name) else { return Ok(()) };
            let found = violations(&definition);
            let changed = self.0.update_status(name, |mut definition| {
                match &found {
                    Some(message) => condition::set(
                        &mut definition,
                        condition::Says {
                            condition_type: CONDITION,
                            status: "True",
                            reason: "Violations",
                            message,
                        },
                    ),
                    None => condition::remove(&mut definition, CONDITION),
                }
                Ok(definition)
            });
            changed.await
        })
    }
}
