//! The policies that apply to a request, with their bindings and parameters.

use super::{evaluator::MutatingEvaluator, failures::Failures, reinvocation::InvocationKey};
use crate::{
    matching::Targets,
    policies::{
        hooks::{Hook, Policy},
        params::find_params,
    },
};
use pintle_admission::{AdmissionRequest, Endpoint, Undecoded};
use pintle_machinery::{Status, StatusReason, Value, ValueExt};
use std::sync::Arc;

/// A policy that applies to a request by a binding and with parameters.
pub(super) struct Invocation<'a> {
    pub(super) policy: Arc<Policy<MutatingEvaluator>>,
    pub(super) binding: Box<str>,
    pub(super) param: Option<Undecoded<'a>>,
    /// The endpoint by which the policy matches; its kind is the kind of the object in expressions.
    pub(super) matched: Endpoint,
}

impl Invocation<'_> {
    /// The identity of the invocation with its parameter in both rounds.
    pub(super) fn key(&self, param: Option<&Value>) -> InvocationKey {
        let param = param
            .map(|param| (param.str_at("metadata.namespace").into(), param.str_at("metadata.name").into()));
        InvocationKey { policy: self.policy.name.clone(), binding: self.binding.clone(), param }
    }
}

/// Adds the invocations of a policy for a request. All are found before the first one changes the object.
pub(super) async fn find<'a>(
    hook: &Hook<MutatingEvaluator>,
    request: &AdmissionRequest<'a>,
    targets: &Targets<'_>,
    failures: &mut Failures,
    invocations: &mut Vec<Invocation<'a>>,
) {
    let policy = &hook.policy;
    let mut misconfigured = |binding: Option<&str>, error: &str| {
        if !policy.ignores_failures {
            let what = if binding.is_some() { "binding" } else { "policy" };
            let error = format!("failed to configure {what}: {error}");
            failures.add(&policy.name, binding, &error, StatusReason::Forbidden);
        }
    };
    let Some(matched) = policy.matcher.endpoint(request, targets) else { return };
    match policy.matcher.selects(request).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(status) => return misconfigured(None, &status.message),
    }
    let served = match policy.param_kind.as_ref().map(|kind| kind.resolve(request)).transpose() {
        Ok(served) => served,
        Err(error) => return misconfigured(None, &error),
    };
    let mut is_convertible = false;
    for binding in &hook.bindings {
        if let Some(matcher) = &binding.matcher {
            match matcher.matches(request, targets).await {
                Ok(Some(_)) => {}
                Ok(None) => continue,
                Err(status) => {
                    misconfigured(Some(&binding.name), &status.message);
                    continue;
                }
            }
        }
        if !is_convertible {
            if let Err(status) = convert(request, matched).await {
                misconfigured(None, &status.message);
                continue;
            }
            is_convertible = true;
        }
        match find_params(served.as_ref(), binding.param_ref.as_ref(), request).await {
            Ok(params) => invocations.extend(params.into_iter().map(|param| Invocation {
                policy: policy.clone(),
                binding: binding.name.clone(),
                param,
                matched: matched.clone(),
            })),
            Err(error) => misconfigured(Some(&binding.name), &error),
        }
    }
}

/// Checks that the objects of a request can be converted to the kind that a policy matches.
///
/// # Errors
/// The error of the conversion.
async fn convert(request: &AdmissionRequest<'_>, matched: &Endpoint) -> Result<(), Status> {
    let version = matched.kind.group_version().to_string();
    let is_other = |object: &&Value| !object.is_null() && object.str_at("apiVersion") != version;
    let objects = request.old_object.into_iter().chain([&*request.object]);
    for object in objects.filter(is_other) {
        request.versions.to_version(object, &matched.kind).await?;
    }
    Ok(())
}
