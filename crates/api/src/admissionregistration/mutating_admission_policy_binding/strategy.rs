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
use pintle_machinery::{ErrorList, Status, Value};
use pintle_registry::{BoxFuture, RequestContext, Strategy};

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_binding_defaults)
    .generation(Generation::Counted)
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update);

const KINDS: BindingKinds =
    BindingKinds { binding: "MutatingAdmissionPolicyBinding", policies: "mutatingadmissionpolicies" };

/// The strategy of bindings.
pub(super) struct BindingStrategy;

impl Strategy for BindingStrategy {
    fn authorize_write<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> Option<BoxFuture<'a, Result<(), Status>>> {
        authorize_param_ref(context, object, old, KINDS, || match old {
            Some(old) => validation::validate_update(object, old),
            None => validation::validate(object),
        })
    }

    fn set_defaults(&self, object: &mut Value) {
        RULES.set_defaults(object);
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        RULES.prepare_for_create(context, object);
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        RULES.validate(context, object)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings_for_name(object)
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        RULES.prepare_for_update(context, object, old);
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        RULES.validate_update(context, object, old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings_for_name(object)
    }

    fn allow_unconditional_update(&self) -> bool {
        RULES.allow_unconditional_update()
    }
}
