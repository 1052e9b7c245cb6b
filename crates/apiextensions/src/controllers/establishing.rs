//! Says that a definition is served, once its names are accepted.

use super::{Context, Controller, condition};
use crate::informer::Change;
use pintle_machinery::Status;
use pintle_registry::BoxFuture;

pub(crate) struct Establishing(pub(crate) Context);

impl Controller for Establishing {
    fn name(&self) -> &'static str {
        "establishing"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let now = change.now.as_ref();
        let is_due = now.is_some_and(|now| now.is_true("NamesAccepted") && !now.is_true("Established"));
        is_due.then(|| change.name().to_owned()).into_iter().collect()
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.0.update_status(name, |mut definition| {
            if condition::is_true(&definition, "NamesAccepted")
                && !condition::is_true(&definition, "Established")
            {
                let says = condition::Says {
                    condition_type: "Established",
                    status: "True",
                    reason: "InitialNamesAccepted",
                    message: "the initial names have been accepted",
                };
                condition::set(&mut definition, says);
            }
            Ok(definition)
        }))
    }
}
