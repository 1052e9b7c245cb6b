//! The strategy of mutating admission policies.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_policy_defaults, parameter_access::authorize_param_kind,
        policy_validation::warnings_for_name,
    },
    plain::{Generation, PlainStrategy},
};
use pintle_machinery::{Status, Value};
use pintle_registry::{BoxFuture, RequestContext};

/// The strategy of policies.
pub(super) const STRATEGY: PlainStrategy = PlainStrategy::NEW
    .defaults(set_policy_defaults)
    .generation(Generation::Counted)
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update)
    .authorized(authorize)
    .warned(warnings_for_name);

fn authorize<'a>(
    context: &'a RequestContext<'a>,
    object: &'a Value,
    old: Option<&'a Value>,
) -> Option<BoxFuture<'a, Result<(), Status>>> {
    authorize_param_kind(context, object, old, "MutatingAdmissionPolicy", || match old {
        Some(old) => validation::validate_update(object, old),
        None => validation::validate(object),
    })
}
