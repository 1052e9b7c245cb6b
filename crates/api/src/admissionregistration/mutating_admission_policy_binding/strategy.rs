//! The strategy of the bindings of mutating admission policies.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_binding_defaults, parameter_access::review_param_ref,
        reserved_names::with_reserved_names,
    },
    plain::{Generation, PlainStrategy},
};
use pintle_machinery::{ErrorList, Value};
use pintle_registry::{BoxFuture, RequestContext};

/// The strategy of bindings.
pub(in crate::admissionregistration) const STRATEGY: PlainStrategy = with_reserved_names(
    PlainStrategy::NEW
        .defaults(set_binding_defaults)
        .generation(Generation::Counted)
        .needs_resource_version()
        .checked(validation::validate, validation::validate_update)
        .reviewed(review),
);

fn review<'a>(
    context: &'a RequestContext<'a>,
    binding: &'a Value,
    _old: Option<&'a Value>,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    review_param_ref(context, binding, "mutatingadmissionpolicies", errors)
}
