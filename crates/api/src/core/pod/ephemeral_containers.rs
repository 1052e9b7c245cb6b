//! `pods/ephemeralcontainers`: adds containers to a running pod for debugging
//! (<https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/>).

use super::strategy::{PodStrategy, drop_disabled_fields, update_generation};
use super::update;
use crate::rules;
use pintle_machinery::{ErrorList, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

/// The strategy of the `ephemeralcontainers` subresource.
#[derive(Debug, Clone, Copy)]
pub(super) struct EphemeralContainersStrategy;

impl Strategy for EphemeralContainersStrategy {
    fn set_defaults(&self, object: &mut Value) {
        PodStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let containers = object.remove_at("spec.ephemeralContainers");
        keep_all_but_spec_part(object, old);
        match containers {
            Some(containers) => object.set("spec.ephemeralContainers", containers),
            None => drop(object.remove_at("spec.ephemeralContainers")),
        }
        drop_disabled_fields(object, Some(old));
        update_generation(object, old);
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        update::validate_ephemeral_containers_update(object, old, context.empty_fields)
    }
}

/// Restores spec, status and metadata; the caller sets its part of the spec afterwards.
pub(super) fn keep_all_but_spec_part(object: &mut Value, old: &Value) {
    rules::keep(object, old, "spec");
    rules::keep(object, old, "status");
    rules::keep_metadata(object, old);
}
