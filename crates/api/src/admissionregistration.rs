//! `admissionregistration.k8s.io`: admission webhooks and admission policies.

mod defaults;
mod expressions;
mod group;
mod match_resources;
pub mod mutating_admission_policy;
pub mod mutating_admission_policy_binding;
pub mod mutating_webhook_configuration;
mod parameter_access;
mod parameters;
mod policy_binding_table;
mod policy_validation;
mod reserved_names;
mod rule_validation;
pub mod validating_admission_policy;
pub mod validating_admission_policy_binding;
pub mod validating_webhook_configuration;
mod webhook_validation;

use crate::{
    declare::{Declare, same_shape, with_api_version},
    plain::PlainStrategy,
};
use group::{V1ALPHA1, V1BETA1};
use pintle_machinery::{ErrorList, Value, ValueExt};
use pintle_registry::{Conversion, Resource};

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        mutating_admission_policy::resource(),
        mutating_admission_policy_binding::resource(),
        mutating_webhook_configuration::resource(),
        validating_admission_policy::resource(),
        validating_admission_policy_binding::resource(),
        validating_webhook_configuration::resource(),
    ]
}

/// The strategies of the kinds whose objects may be in manifests.
const STRATEGIES: [(&str, PlainStrategy); 6] = [
    ("MutatingAdmissionPolicy", mutating_admission_policy::STRATEGY),
    ("MutatingAdmissionPolicyBinding", mutating_admission_policy_binding::STRATEGY),
    ("MutatingWebhookConfiguration", mutating_webhook_configuration::STRATEGY),
    ("ValidatingAdmissionPolicy", validating_admission_policy::STRATEGY),
    ("ValidatingAdmissionPolicyBinding", validating_admission_policy_binding::STRATEGY),
    ("ValidatingWebhookConfiguration", validating_webhook_configuration::STRATEGY),
];

/// Defaults an object of a manifest (<https://kep.k8s.io/5793>), and validates it as a new one, but for its name. An
/// object of another kind than those of the group is not changed and has no errors.
pub fn default_and_validate(kind: &str, object: &mut Value) -> ErrorList {
    let strategy = STRATEGIES.iter().find(|(name, _)| *name == kind);
    strategy.map(|(_, strategy)| strategy.default_and_validate(object)).unwrap_or_default()
}

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let beta = same_shape!("admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1");
    let alpha = same_shape!("admissionregistration.k8s.io/v1alpha1", "admissionregistration.k8s.io/v1");
    // The first version has a default that the later ones require.
    let alpha_binding = Conversion {
        to_storage: |mut object| {
            if object.at("spec.paramRef").is_some() {
                object.set_default("spec.paramRef.parameterNotFoundAction", "Deny");
            }
            with_api_version(object, "admissionregistration.k8s.io/v1")
        },
        ..alpha
    };
    let mut resources = Vec::new();
    for (resource, alpha) in [
        (mutating_admission_policy::resource(), alpha),
        (mutating_admission_policy_binding::resource(), alpha_binding),
    ] {
        resources.push(resource.clone().in_version(V1BETA1, beta));
        resources.push(resource.in_version(V1ALPHA1, alpha).deprecated(35, 38, None));
    }
    for resource in [validating_admission_policy::resource(), validating_admission_policy_binding::resource()]
    {
        resources.push(resource.in_version(V1BETA1, beta).deprecated(31, 34, None));
    }
    resources
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn bindings_of_the_first_version_deny_where_parameters_are_missing() {
        let resources = resources_off_by_default();
        let stored = |version: &str, spec: pintle_machinery::Value| {
            let is_wanted = |resource: &&Resource| {
                resource.kind == "MutatingAdmissionPolicyBinding" && resource.resource.version == version
            };
            let conversion = resources.iter().find(is_wanted).unwrap().conversion.as_ref().unwrap();
            (conversion.to_storage)(json!({"spec": spec}))["spec"].clone()
        };
        let denying = json!({"paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}});
        assert_eq!(stored("v1alpha1", json!({"paramRef": {"name": "a"}})), denying);
        assert_eq!(stored("v1beta1", json!({"paramRef": {"name": "a"}})), json!({"paramRef": {"name": "a"}}));
        assert_eq!(stored("v1alpha1", json!({"policyName": "p"})), json!({"policyName": "p"}));
    }
}
