//! Requirements of policies and bindings in static manifests, besides those of policies and bindings in the API.

use crate::static_manifests::{ManifestKind, ManifestKinds, Objects};
use pintle_go_forms::quote;
use pintle_machinery::{
    Value, ValueExt,
    meta::{ObjectMeta, STATIC_MANIFEST_SUFFIX},
};
use std::{collections::HashSet, path::Path};

/// The manifests of `MutatingAdmissionPolicy`: bindings and policies.
pub(super) static MUTATING: ManifestKinds<2> =
    kinds("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding");
/// The manifests of `ValidatingAdmissionPolicy`: bindings and policies.
pub(super) static VALIDATING: ManifestKinds<2> =
    kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding");

const fn kinds(policy: &'static str, binding: &'static str) -> ManifestKinds<2> {
    ManifestKinds {
        subject: "policy",
        kinds: [
            ManifestKind { name: binding, check: check_binding },
            ManifestKind { name: policy, check: check_policy },
        ],
        check_all: check_references,
        scheme: "pkg/admission/plugin/policy/manifest/loader/validating_loader.go:35",
    }
}

/// Requires that a policy has no parameters: they are objects of the API.
fn check_policy(policy: &Value, _file: &Path) -> Result<(), String> {
    match has(policy, "spec.paramKind") {
        true => Err(format!(
            "{} {}: spec.paramKind is not supported for static manifests",
            policy.str_at("kind"),
            quote(policy.name())
        )),
        false => Ok(()),
    }
}

fn check_binding(binding: &Value, _file: &Path) -> Result<(), String> {
    let (name, policy) = (quote(binding.name()), binding.str_at("spec.policyName"));
    if policy.is_empty() {
        return Err(format!("binding {name} must reference a policy (spec.policyName)"));
    }
    if !policy.ends_with(STATIC_MANIFEST_SUFFIX) {
        let suffix = quote(STATIC_MANIFEST_SUFFIX);
        return Err(format!("binding {name}: spec.policyName {} must end with {suffix}", quote(policy)));
    }
    match has(binding, "spec.paramRef") {
        true => Err(format!("binding {name}: spec.paramRef is not supported for static manifests")),
        false => Ok(()),
    }
}

/// Requires that the policies of bindings are in the directory.
fn check_references([bindings, policies]: &Objects<2>) -> Result<(), String> {
    let names: HashSet<&str> = policies.iter().map(|policy| policy.name()).collect();
    let policy_of = |binding: &Value| binding.str_at("spec.policyName").to_owned();
    match bindings.iter().find(|binding| !names.contains(policy_of(binding).as_str())) {
        None => Ok(()),
        Some(binding) => Err(format!(
            "binding {} references policy {} which does not exist in the manifest directory",
            quote(binding.name()),
            quote(&policy_of(binding))
        )),
    }
}

fn has(object: &Value, path: &str) -> bool {
    object.at(path).is_some_and(|value| !value.is_null())
}
