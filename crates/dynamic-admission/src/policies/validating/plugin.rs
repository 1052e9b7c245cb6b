//! The plugin ValidatingAdmissionPolicy.

use super::{
    annotations::{Annotations, FAILURE_KEY, failure_value},
    decision::{Annotation, Decision, Results, Verdict},
    evaluator::{Undecided, ValidatingEvaluator},
    metrics::PolicyMetrics,
};
use crate::{
    ConditionMetrics,
    matching::Targets,
    policies::{
        binding::Binding,
        hooks::{Hook, Hooks},
        manifests::VALIDATING,
        params::find_params,
        view::{View, namespace_object},
    },
    static_manifests::ManifestLoader,
};
use pintle_admission::{AdmissionPlugin, AdmissionRequest, Endpoint, PluginError, Steps};
use pintle_auth::authz::Authorizer;
use pintle_authorization::ExpressionAuthorizer;
use pintle_cel::Authority;
use pintle_machinery::{Status, StatusCause, StatusReason, Value};
use pintle_offload::Pace;
use pintle_registry::BoxFuture;
use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

const PLUGIN: &str = "ValidatingAdmissionPolicy";

/// Evaluates validating admission policies.
pub struct ValidatingPolicies {
    hooks: Hooks<ValidatingEvaluator>,
    authorizer: Arc<dyn Authorizer>,
    metrics: ValidationMetrics,
}

/// The metrics of validating policies.
struct ValidationMetrics {
    policies: PolicyMetrics,
    conditions: ConditionMetrics,
}

impl ValidatingPolicies {
    /// The plugin; expressions check permissions with the authorizer.
    pub fn new(
        authorizer: Arc<dyn Authorizer>,
        policies: PolicyMetrics,
        conditions: ConditionMetrics,
    ) -> ValidatingPolicies {
        let metrics = ValidationMetrics { policies, conditions };
        let hooks = Hooks::new("validatingadmissionpolicies", "validatingadmissionpolicybindings");
        ValidatingPolicies { hooks, authorizer, metrics }
    }

    /// Adds the policies of the static manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub fn with_manifests(
        self,
        directory: Option<&Path>,
        loader: &ManifestLoader,
    ) -> Result<ValidatingPolicies, PluginError> {
        let hooks = self.hooks.with_manifests(PLUGIN, directory, &VALIDATING, loader)?;
        Ok(ValidatingPolicies { hooks, ..self })
    }
}

impl AdmissionPlugin for ValidatingPolicies {
    fn name(&self) -> &'static str {
        PLUGIN
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        self.hooks.handle(request)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let mut outcome = Outcome::default();
            let judged = self.judge(request, &mut outcome).await;
            request.warnings.append(&mut outcome.warnings);
            request.audit_annotations.append(&mut outcome.annotations);
            judged?;
            outcome.denial.map_or(Ok(()), |denial| Err(denial.status(request)))
        })
    }
}

/// The effects of all policies on a request.
#[derive(Default)]
struct Outcome {
    /// The first denial.
    denial: Option<Denial>,
    warnings: Vec<String>,
    /// The characters of the warnings that a response can have of them.
    warned: usize,
    annotations: Vec<(Cow<'static, str>, String)>,
    /// Whether the audit event has its failure; it has the first one only.
    failure_is_noted: bool,
}

/// The characters after which a response has no further warnings, and those that it has of each by then.
const MAX_WARNED: usize = 4096;
const MAX_OF_WARNING: usize = 256;

struct Denial {
    message: String,
    reason: StatusReason,
}

impl Outcome {
    fn deny(&mut self, policy: &str, binding: Option<&Binding>, decision: &Decision) {
        if self.denial.is_some() {
            return;
        }
        let binding = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message = &decision.message;
        let reason = match decision.verdict {
            Verdict::Fails(reason) => reason,
            Verdict::Holds | Verdict::Error | Verdict::IgnoredError => StatusReason::Invalid,
        };
        let message = format!("ValidatingAdmissionPolicy '{policy}'{binding} denied request: {message}");
        self.denial = Some(Denial { message, reason });
    }

    /// Adds a warning, unless the response has no room for it.
    fn warn(&mut self, warning: String) {
        if self.warned <= MAX_WARNED && !self.warnings.contains(&warning) {
            self.warned += warning.chars().take(MAX_OF_WARNING).count();
            self.warnings.push(warning);
        }
    }

    /// Denies a request because a policy or binding cannot be applied, unless its failures are ignored.
    fn misconfigured(&mut self, hook: &Hook<ValidatingEvaluator>, binding: Option<&Binding>, error: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {error}");
        let decision = Decision::error(message, hook.policy.ignores_failures, Duration::ZERO);
        if decision.denies() {
            self.deny(&hook.policy.name, binding, &decision);
        }
    }
}

impl Denial {
    fn status(self, request: &AdmissionRequest<'_>) -> Status {
        let mut status = request.forbidden(&self.message);
        status.reason = self.reason;
        status.code = match self.reason {
            StatusReason::Unauthorized => 401,
            StatusReason::Forbidden => 403,
            StatusReason::RequestEntityTooLarge => 413,
            _ => 422,
        };
        if let Some(details) = &mut status.details {
            details.causes.push(StatusCause { message: self.message, ..StatusCause::default() });
        }
        status
    }
}

/// The data of a request that policies share.
struct Shared<'a> {
    view: Option<View<'a>>,
    /// `namespaceObject`, once a policy has matched.
    namespace: Option<Option<Value>>,
    authority: Option<Arc<ExpressionAuthorizer>>,
    pace: Pace,
}

impl ValidatingPolicies {
    /// Evaluates all policies that match the request.
    ///
    /// # Errors
    /// When the policies or the namespace of the request cannot be read. Denials are in the outcome.
    async fn judge(&self, request: &AdmissionRequest<'_>, outcome: &mut Outcome) -> Result<(), Status> {
        let hooks = self.hooks.present(request).await?;
        if hooks.is_empty() {
            return Ok(());
        }
        let requested = Endpoint {
            resource: request.resource.clone(),
            subresource: request.subresource.to_owned(),
            kind: request.kind.clone(),
        };
        let find_equivalents = || request.versions.equivalents();
        let targets = Targets::new(&requested, &find_equivalents);
        let mut shared = Shared { view: None, namespace: None, authority: None, pace: Pace::new() };
        for hook in hooks.iter() {
            let Some(matched) = hook.policy.matcher.endpoint(request, &targets) else { continue };
            match hook.policy.matcher.selects(request).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(status) => {
                    outcome.misconfigured(hook, None, &status.message);
                    continue;
                }
            }
            self.apply(hook, request, &targets, matched, &mut shared, outcome).await?;
        }
        Ok(())
    }

    /// Evaluates a policy that matches the request, for all bindings that do.
    async fn apply<'a>(
        &self,
        hook: &Hook<ValidatingEvaluator>,
        request: &'a AdmissionRequest<'_>,
        targets: &'a Targets<'_>,
        matched: &'a Endpoint,
        shared: &mut Shared<'a>,
        outcome: &mut Outcome,
    ) -> Result<(), Status> {
        let policy = &hook.policy;
        let served = match policy.param_kind.as_ref().map(|kind| kind.resolve(request)).transpose() {
            Ok(served) => served,
            Err(error) => {
                outcome.misconfigured(hook, None, &error);
                return Ok(());
            }
        };
        let mut annotations = Annotations::default();
        for binding in &hook.bindings {
            if let Some(matcher) = &binding.matcher {
                match matcher.matches(request, targets).await {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(status) => {
                        outcome.misconfigured(hook, Some(binding), &status.message);
                        continue;
                    }
                }
            }
            let params = match find_params(served.as_ref(), binding.param_ref.as_ref(), request).await {
                Ok(params) => params,
                Err(error) => {
                    outcome.misconfigured(hook, Some(binding), &error);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if !shared.view.as_ref().is_some_and(|view| view.is_of(matched)) {
                match View::new(request, targets.requested(), matched).await {
                    Ok(view) => shared.view = Some(view),
                    Err(status) => {
                        let error = format!("failed to convert object version: {}", status.message);
                        outcome.misconfigured(hook, Some(binding), &error);
                        continue;
                    }
                }
            }
            if shared.namespace.is_none() {
                shared.namespace = Some(namespace_object(request).await?);
            }
            for param in params {
                shared.pace.breathe().await;
                let param = match policy.read_param(param.as_ref(), request).await {
                    Ok(param) => param,
                    Err(error) => {
                        outcome.misconfigured(hook, Some(binding), &error);
                        continue;
                    }
                };
                let results = self.evaluate(hook, request, param.as_deref(), shared).await;
                self.enforce(&policy.name, binding, results, &mut annotations, outcome);
            }
        }
        for (key, value) in annotations.of_policy(&policy.name) {
            outcome.annotations.push((Cow::Owned(key), value));
        }
        Ok(())
    }

    async fn evaluate(
        &self,
        hook: &Hook<ValidatingEvaluator>,
        request: &AdmissionRequest<'_>,
        param: Option<&Value>,
        shared: &mut Shared<'_>,
    ) -> Results {
        let Shared { view: Some(view), namespace, authority, pace } = shared else {
            return Results::default();
        };
        let namespace = namespace.as_ref().and_then(Option::as_ref);
        let authority = authority.get_or_insert_with(|| {
            ExpressionAuthorizer::new(Arc::new(request.context.user.clone()), self.authorizer.clone())
        });
        let input = view.input(
            hook.policy.reads_fields,
            param,
            namespace,
            Some(authority.clone() as Arc<dyn Authority>),
        );
        let evaluator = hook.policy.evaluator().await;
        let conditions = evaluator.conditions(&hook.policy.name);
        let matched =
            conditions.evaluate(&input, authority, request.operation, &self.metrics.conditions, pace).await;
        if let Some(results) = evaluator.unmatched(matched) {
            return results;
        }
        loop {
            match evaluator.evaluate(&input, pace).await {
                Ok(results) => return results,
                Err(Undecided) => authority.settle().await,
            }
        }
    }

    /// Does with the results as the binding says.
    fn enforce(
        &self,
        policy: &str,
        binding: &Binding,
        results: Results,
        annotations: &mut Annotations,
        outcome: &mut Outcome,
    ) {
        for (index, decision) in results.decisions.iter().enumerate() {
            if decision.verdict == Verdict::IgnoredError {
                self.metrics.policies.observe(policy, &binding.name, decision, "allow");
            }
            if !decision.denies() {
                continue;
            }
            for action in &binding.actions {
                match &**action {
                    "Deny" => {
                        outcome.deny(policy, Some(binding), decision);
                        self.metrics.policies.observe(policy, &binding.name, decision, "deny");
                    }
                    "Audit" => {
                        if !outcome.failure_is_noted {
                            outcome.failure_is_noted = true;
                            let value = failure_value(policy, binding, index, decision);
                            outcome.annotations.push((Cow::Borrowed(FAILURE_KEY), value));
                        }
                        self.metrics.policies.observe(policy, &binding.name, decision, "audit");
                    }
                    "Warn" => {
                        outcome.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{}': {}",
                            binding.name, decision.message
                        ));
                        self.metrics.policies.observe(policy, &binding.name, decision, "warn");
                    }
                    _ => {}
                }
            }
        }
        for annotation in results.annotations {
            match annotation {
                Annotation::Publish { key, value } => annotations.add(key, value),
                Annotation::Error { message, elapsed } => {
                    let decision = Decision::error(message, false, elapsed);
                    outcome.deny(policy, Some(binding), &decision);
                    self.metrics.policies.observe(policy, &binding.name, &decision, "deny");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_as_far_as_a_response_has_them() {
        let mut outcome = Outcome::default();
        for index in 0..100_000 {
            outcome.warn(format!("{index} {}", "x".repeat(1000)));
            outcome.warn("again".to_owned());
        }
        assert_eq!(outcome.warnings.len(), 17);
    }
}
