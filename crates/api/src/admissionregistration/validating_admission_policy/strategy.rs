//! The strategies of validating admission policies and of their status.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_policy_defaults, parameter_access::authorize_param_kind,
        policy_validation::warnings_for_name,
    },
    plain::{Generation, PlainStatusStrategy, PlainStrategy},
};
use pintle_machinery::{ErrorList, Status, Value};
use pintle_registry::{BoxFuture, RequestContext, Strategy};

/// The strategy of policies.
pub(super) const STRATEGY: PlainStrategy = PlainStrategy::NEW
    .defaults(set_policy_defaults)
    .generation(Generation::Counted)
    .with_status()
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update)
    .authorized(authorize)
    .warned(warnings_for_name);

fn authorize<'a>(
    context: &'a RequestContext<'a>,
    object: &'a Value,
    old: Option<&'a Value>,
) -> Option<BoxFuture<'a, Result<(), Status>>> {
    authorize_param_kind(context, object, old, "ValidatingAdmissionPolicy", || match old {
        Some(old) => validation::validate_update(object, old),
        None => validation::validate(object),
    })
}

/// The strategy of their status.
pub(super) struct StatusStrategy;

const STATUS_RULES: PlainStatusStrategy = PlainStatusStrategy { keeps_metadata: true };

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        STATUS_RULES.reset_fields()
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        STATUS_RULES.prepare_for_update(context, object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> ErrorList {
        validation::validate_status(object)
    }
}
