//! The strategy of the bindings of mutating admission policies.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_binding_defaults,
        parameter_access::{BindingKinds, authorize_param_ref},
        policy_validation::warnings_for_name,
    },
    plain::{Generation, PlainStrategy},
};
use pintle_machinery::{Status, Value};
use pintle_registry::{BoxFuture, RequestContext};

/// The strategy of bindings.
pub(super) const STRATEGY: PlainStrategy = PlainStrategy::NEW
    .defaults(set_binding_defaults)
    .generation(Generation::Counted)
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update)
    .authorized(authorize)
    .warned(warnings_for_name);

const KINDS: BindingKinds =
    BindingKinds { binding: "MutatingAdmissionPolicyBinding", policies: "mutatingadmissionpolicies" };

fn authorize<'a>(
    context: &'a RequestContext<'a>,
    object: &'a Value,
    old: Option<&'a Value>,
) -> Option<BoxFuture<'a, Result<(), Status>>> {
    authorize_param_ref(context, object, KINDS, || match old {
        Some(old) => validation::validate_update(object, old),
        None => validation::validate(object),
    })
}
