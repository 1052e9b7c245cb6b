//! Sets the `Established` condition of a definition after its names are accepted.

use super::{Context, Controller, condition};
use crate::{definition::check_ca_bundle, definition_view::Conversion, informer::Change};
use pintle_machinery::{Status, ValueExt};
use pintle_registry::BoxFuture;

const INVALID_BUNDLE: &str = "InvalidCABundle";

fn has_invalid_bundle(conversion: Option<&Conversion>) -> bool {
    let webhook = conversion.and_then(|conversion| conversion.webhook.as_ref());
    webhook.is_some_and(|webhook| check_ca_bundle(webhook.str_at("clientConfig.caBundle")).is_err())
}

pub(crate) struct Establishing(pub(crate) Context);

impl Controller for Establishing {
    fn name(&self) -> &'static str {
        "establishing"
    }

    fn queue_name(&self) -> &'static str {
        "crdEstablishing"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let now = change.now.as_ref();
        let is_due = now.is_some_and(|now| {
            let said = now.condition("Established").is_some_and(|old| old.reason == INVALID_BUNDLE);
            let waits = said && has_invalid_bundle(now.spec.conversion.as_ref());
            now.is_true("NamesAccepted") && !now.is_true("Established") && !waits
        });
        is_due.then(|| change.name().to_owned()).into_iter().collect()
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.0.update_status(name, |mut definition| {
            if condition::is_true(&definition, "NamesAccepted")
                && !condition::is_true(&definition, "Established")
            {
                let bundle = definition.str_at("spec.conversion.webhook.clientConfig.caBundle");
                let says = match check_ca_bundle(bundle) {
                    Ok(()) => condition::Says {
                        condition_type: "Established",
                        status: "True",
                        reason: "InitialNamesAccepted",
                        message: "the initial names have been accepted",
                    },
                    // Without a valid trust anchor the webhook cannot be authenticated.
                    Err(_) => condition::Says {
                        condition_type: "Established",
                        status: "False",
                        reason: INVALID_BUNDLE,
                        message: "The conversion webhook CABundle is invalid",
                    },
                };
                condition::set(&mut definition, says);
            }
            Ok(definition)
        }))
    }
}
