//! The strategies of validating admission policies and of their status.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_policy_defaults, parameter_access::review_param_kind,
        reserved_names::with_reserved_names,
    },
    plain::{Generation, PlainStatusStrategy, PlainStrategy},
};
use pintle_machinery::{ErrorList, Value};
use pintle_registry::{RequestContext, Strategy};

/// The strategy of policies.
pub(in crate::admissionregistration) const STRATEGY: PlainStrategy = with_reserved_names(
    PlainStrategy::NEW
        .defaults(set_policy_defaults)
        .generation(Generation::Counted)
        .with_status()
        .needs_resource_version()
        .checked(validation::validate, validation::validate_update)
        .reviewed(review_param_kind),
);

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

    fn allow_unconditional_update(&self) -> bool {
        STRATEGY.allow_unconditional_update()
    }
}
