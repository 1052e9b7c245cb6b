//! The plugin MutatingAdmissionPolicy.

use super::{
    evaluator::MutatingEvaluator,
    failures::Failures,
    invocation::{Invocation, find},
    metrics::MutationMetrics,
    patch::{MutationError, PatchedKind, check_version},
    reinvocation::Calls,
};
use crate::{
    ConditionMetrics,
    matching::Targets,
    policies::{
        hooks::Hooks,
        manifests::MUTATING,
        view::{View, namespace_object},
    },
    static_manifests::ManifestLoader,
};
use pintle_admission::{AdmissionPlugin, AdmissionRequest, Endpoint, Operation, PluginError, Steps};
use pintle_admission_cel::{Input, MatchOutcome};
use pintle_auth::authz::Authorizer;
use pintle_authorization::ExpressionAuthorizer;
use pintle_cel::Authority;
use pintle_machinery::{Status, StatusReason, Value, validation::semantically_equal};
use pintle_offload::Pace;
use pintle_registry::BoxFuture;
use std::{path::Path, sync::Arc, time::Instant};

const PLUGIN: &str = "MutatingAdmissionPolicy";

/// Evaluates mutating admission policies, and changes objects as they say.
pub struct MutatingPolicies {
    hooks: Hooks<MutatingEvaluator>,
    /// Without it no policy is in force. The resources may not even be served.
    is_enabled: bool,
    authorizer: Arc<dyn Authorizer>,
    metrics: MutationMetrics,
    condition_metrics: ConditionMetrics,
}

impl MutatingPolicies {
    /// The plugin; expressions check permissions with the authorizer. `is_enabled` is the feature gate
    /// `MutatingAdmissionPolicy`, which is closed in emulated versions that do not serve policies by default.
    pub fn new(
        is_enabled: bool,
        authorizer: Arc<dyn Authorizer>,
        metrics: MutationMetrics,
        condition_metrics: ConditionMetrics,
    ) -> MutatingPolicies {
        let hooks = Hooks::new("mutatingadmissionpolicies", "mutatingadmissionpolicybindings");
        MutatingPolicies { hooks, is_enabled, authorizer, metrics, condition_metrics }
    }

    /// Adds the policies of the static manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub fn with_manifests(
        self,
        directory: Option<&Path>,
        loader: &ManifestLoader,
    ) -> Result<MutatingPolicies, PluginError> {
        // A plugin that is not enabled does not read them.
        let directory = directory.filter(|_| self.is_enabled);
        let hooks = self.hooks.with_manifests(PLUGIN, directory, &MUTATING, loader)?;
        Ok(MutatingPolicies { hooks, ..self })
    }
}

impl AdmissionPlugin for MutatingPolicies {
    fn name(&self) -> &'static str {
        PLUGIN
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        self.is_enabled && request.operation != Operation::Delete && self.hooks.handle(request)
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let requested = Endpoint {
                resource: request.resource.clone(),
                subresource: request.subresource.to_owned(),
                kind: request.kind.clone(),
            };
            let mut failures = Failures::default();
            let invocations = self.invocations(request, &requested, &mut failures).await?;
            if !invocations.is_empty() {
                self.mutate(request, &requested, &invocations, &mut failures).await?;
            }
            failures.refusal(request).map_or(Ok(()), Err)
        })
    }
}

/// The data of a request that policies share.
struct Shared {
    /// `namespaceObject`
    namespace: Option<Value>,
    authority: Arc<ExpressionAuthorizer>,
}

/// An invocation whose turn it is.
struct Evaluation<'e> {
    invocation: &'e Invocation<'e>,
    param: Option<&'e Value>,
    shared: &'e Shared,
}

impl<'e> Evaluation<'e> {
    /// The input of the policy's expressions.
    fn input(&self, view: &'e View<'_>) -> Input<'e> {
        let authority = self.shared.authority.clone() as Arc<dyn Authority>;
        let namespace = self.shared.namespace.as_ref();
        view.input(self.invocation.policy.reads_fields, self.param, namespace, Some(authority))
    }
}

impl MutatingPolicies {
    /// The policies that apply to the request, by name.
    ///
    /// # Errors
    /// When the policies cannot be read.
    async fn invocations<'a>(
        &self,
        request: &AdmissionRequest<'a>,
        requested: &Endpoint,
        failures: &mut Failures,
    ) -> Result<Vec<Invocation<'a>>, Status> {
        let mut invocations = Vec::new();
        let hooks = self.hooks.present(request).await?;
        if !hooks.is_empty() {
            let find_equivalents = || request.versions.equivalents();
            let targets = Targets::new(requested, &find_equivalents);
            for hook in hooks.iter() {
                find(hook, request, &targets, failures, &mut invocations).await;
            }
        }
        Ok(invocations)
    }

    /// Changes the object by one policy after the other.
    ///
    /// # Errors
    /// When the namespace of the request cannot be read, and for an object that a patch has broken.
    async fn mutate(
        &self,
        request: &mut AdmissionRequest<'_>,
        requested: &Endpoint,
        invocations: &[Invocation<'_>],
        failures: &mut Failures,
    ) -> Result<(), Status> {
        let user = Arc::new(request.context.user.clone());
        let shared = Shared {
            namespace: namespace_object(request).await?,
            authority: ExpressionAuthorizer::new(user, self.authorizer.clone()),
        };
        let mut calls: Calls = request.reinvocation.take();
        let is_second_round = request.reinvocation.is_second_round();
        if is_second_round {
            calls.begin_second_round(&request.object);
        }
        let mut is_patched = false;
        let mut pace = Pace::new();
        for invocation in invocations {
            let Invocation { policy, binding, .. } = invocation;
            let mut fail = |error: &str, reason| {
                if !policy.ignores_failures {
                    failures.add(&policy.name, Some(binding), error, reason);
                }
            };
            pace.breathe().await;
            let param = match policy.read_param(invocation.param.as_ref(), request).await {
                Ok(param) => param,
                Err(error) => {
                    fail(&format!("failed to configure binding: {error}"), StatusReason::Forbidden);
                    continue;
                }
            };
            let mut fail = |error: &str| fail(error, StatusReason::Invalid);
            let evaluation = Evaluation { invocation, param: param.as_deref(), shared: &shared };
            match self.conditions(request, requested, &evaluation, &mut pace).await? {
                MatchOutcome::Holds => {}
                MatchOutcome::Error { message, .. } => {
                    fail(&message);
                    continue;
                }
                MatchOutcome::Fails { .. } | MatchOutcome::Undecided => continue,
            }
            let key = invocation.key(param.as_deref());
            if is_second_round && !calls.repeats(&key) {
                continue;
            }
            let evaluator = policy.evaluator().await;
            let mut is_changed = false;
            for index in 0..evaluator.len() {
                let started = Instant::now();
                let result = patched(request, requested, &evaluation, index, &mut pace).await;
                if !request.object.is_null() {
                    self.metrics.observe(&policy.name, binding, &result, started.elapsed());
                }
                match result {
                    Ok(None) => {}
                    Ok(Some(object)) => {
                        is_patched = true;
                        is_changed |= !semantically_equal(&object, &request.object);
                        request.replace_object(object);
                    }
                    Err(MutationError::Failed(error)) => fail(&error),
                    Err(MutationError::Refused(status)) => return Err(*status),
                    Err(MutationError::Undecided) => {}
                }
            }
            if is_changed {
                calls.note_change();
                request.reinvocation.request();
            }
            if evaluator.is_reinvocable() {
                calls.note_reinvocable(key);
            }
        }
        if is_patched {
            calls.note_change();
            request.reinvocation.request();
        }
        calls.end_round(&request.object);
        request.reinvocation.keep(calls);
        Ok(())
    }

    /// Evaluates the match conditions of a policy on the object as the policies before it have left it.
    ///
    /// # Errors
    /// When the object cannot be converted.
    async fn conditions(
        &self,
        request: &AdmissionRequest<'_>,
        requested: &Endpoint,
        evaluation: &Evaluation<'_>,
        pace: &mut Pace,
    ) -> Result<MatchOutcome, Status> {
        let view = View::new(request, requested, &evaluation.invocation.matched).await?;
        let input = evaluation.input(&view);
        let policy = &evaluation.invocation.policy;
        let conditions = policy.evaluator().await.conditions(&policy.name);
        let (authority, metrics) = (&evaluation.shared.authority, &self.condition_metrics);
        Ok(conditions.evaluate(&input, authority, request.operation, metrics, pace).await)
    }
}

/// The object after a mutation, in the form of the request's object; `None` if there is no object to change.
///
/// # Errors
/// When the mutation fails, or its result is no object of the kind.
async fn patched(
    request: &AdmissionRequest<'_>,
    requested: &Endpoint,
    evaluation: &Evaluation<'_>,
    index: usize,
    pace: &mut Pace,
) -> Result<Option<Value>, MutationError> {
    let refused = |status: Status| MutationError::Refused(Box::new(status));
    let Evaluation { invocation, shared, .. } = evaluation;
    let matched = &invocation.matched;
    let view = View::new(request, requested, matched).await.map_err(refused)?;
    let Some(object) = view.object() else { return Ok(None) };
    let Some(schema) = request.versions.schema(&matched.kind) else {
        return Err(refused(Status::service_unavailable(format!(
            "Resource kind {} not found. There can be a delay between when CustomResourceDefinitions are created and \
             when they are available.",
            matched.kind
        ))));
    };
    let evaluator = invocation.policy.evaluator().await;
    let patch = loop {
        match evaluator.patch(index, &evaluation.input(&view), pace).await {
            Err(MutationError::Undecided) => shared.authority.settle().await,
            patch => break patch?,
        }
    };
    let Some(patch) = patch else { return Ok(None) };
    let (kind, resource) = (&matched.kind, &matched.resource);
    let is_published = kind.group == resource.group
        && kind.version == resource.version
        && request.operation != Operation::Connect;
    let matched = PatchedKind { kind, schema, is_published };
    let (patched, found) = patch.apply(object, matched)?;
    check_version(matched, request.kind)?;
    if request.versions.schema(&found).is_none() {
        let version = found.group_version();
        return Err(refused(Status::internal_error(format!(
            "failed to convert object: request to convert CR from an invalid group/version: {version}"
        ))));
    }
    let json = request.versions.encode(&patched, &found).map_err(refused)?;
    request.versions.read_version(&json, &found).await.map(Some).map_err(refused)
}
