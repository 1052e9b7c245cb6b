//! The policies in force, in a compiled form that is kept while they are unchanged.

use super::{
    binding::Binding,
    excluded::{is_policy, is_review},
    params::ParamKind,
};
use crate::{
    fields::read_fields,
    kept::{Compiled, Forms, Kept},
    matching::Matcher,
    static_manifests::{ManifestKinds, ManifestLoader, Manifests, Objects},
};
use pintle_admission::{AdmissionRequest, PluginError, Undecoded};
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use pintle_offload::leave_worker;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, OnceLock},
};

/// The compiled expressions of a policy.
pub(super) trait Evaluator: Send + Sync + Sized {
    /// Compiles the expressions of a policy. Expressions that do not compile fail when they are evaluated.
    fn compile(policy: &Value) -> Self;
}

/// A policy in the form that requests are compared with.
pub(super) struct Policy<E> {
    pub(super) name: Box<str>,
    pub(super) matcher: Matcher,
    pub(super) param_kind: Option<ParamKind>,
    /// `failurePolicy: Ignore`
    pub(super) ignores_failures: bool,
    /// Whether its expressions read the fields of managers.
    pub(super) reads_fields: bool,
    object: Arc<Value>,
    evaluator: OnceLock<E>,
}

impl<E> Policy<E> {
    /// The parameter of an evaluation, in the version of the policy's `paramKind`.
    ///
    /// # Errors
    /// As [`ParamKind::read`].
    pub(super) async fn read_param(
        &self,
        param: Option<&Undecoded<'_>>,
        request: &AdmissionRequest<'_>,
    ) -> Result<Option<Arc<Value>>, String> {
        match self.param_kind.as_ref().zip(param) {
            Some((kind, param)) => kind.read(param, request).await.map(Some),
            None => Ok(None),
        }
    }
}

impl<E: Evaluator> Policy<E> {
    fn new(object: Arc<Value>) -> Policy<E> {
        let constraints = object.at("spec.matchConstraints").unwrap_or(&Value::Null);
        Policy {
            name: object.name().into(),
            matcher: Matcher::of_match_resources(constraints),
            param_kind: object.at("spec.paramKind").map(ParamKind::new),
            ignores_failures: object.str_at("spec.failurePolicy") == "Ignore",
            reads_fields: object.at("spec").is_some_and(read_fields),
            evaluator: OnceLock::new(),
            object,
        }
    }

    /// The compiled expressions. They are compiled for the first request that the policy matches, which takes long.
    pub(super) async fn evaluator(&self) -> &E {
        if self.evaluator.get().is_none() {
            leave_worker().await;
        }
        self.evaluator.get_or_init(|| E::compile(&self.object))
    }
}

/// A policy with its bindings, of which there is at least one.
pub(super) struct Hook<E> {
    pub(super) policy: Arc<Policy<E>>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// The policies of one kind.
pub(super) struct Hooks<E> {
    kept: Kept<CompiledPolicies<E>, 2>,
    manifests: Option<Arc<Manifests<Vec<Hook<E>>>>>,
}

/// The policies in force for a request.
pub(super) struct PresentHooks<E> {
    manifests: Option<Arc<Vec<Hook<E>>>>,
    configured: Option<Arc<CompiledPolicies<E>>>,
}

impl<E> PresentHooks<E> {
    /// The policies that have bindings: those of manifests, then those of objects, each by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Hook<E>> {
        let manifests = self.manifests.iter().flat_map(|hooks| hooks.iter());
        manifests.chain(self.configured.iter().flat_map(|compiled| &compiled.hooks))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// All policies and bindings of one moment that are objects.
struct CompiledPolicies<E> {
    policies: Forms<Policy<E>>,
    bindings: Forms<Binding>,
    hooks: Vec<Hook<E>>,
}

impl<E> Default for CompiledPolicies<E> {
    fn default() -> CompiledPolicies<E> {
        CompiledPolicies { policies: Forms::default(), bindings: Forms::default(), hooks: Vec::new() }
    }
}

impl<E> Compiled<2> for CompiledPolicies<E> {
    fn is_of(&self, [bindings, policies]: &[Vec<Arc<Value>>; 2]) -> bool {
        self.policies.are_of(policies) && self.bindings.are_of(bindings)
    }
}

impl<E: Evaluator + 'static> Hooks<E> {
    /// The policies and bindings of these resources of `admissionregistration.k8s.io`.
    pub(super) fn new(policies: &str, bindings: &str) -> Hooks<E> {
        Hooks { kept: Kept::new([bindings, policies]), manifests: None }
    }

    /// Adds the policies and bindings of the manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub(super) fn with_manifests(
        self,
        plugin: &'static str,
        directory: Option<&Path>,
        kinds: &'static ManifestKinds<2>,
        loader: &ManifestLoader,
    ) -> Result<Hooks<E>, PluginError> {
        let compile = |[bindings, policies]: Objects<2>| {
            let policies = Forms::default().updated(policies, |object| Policy::new(object.clone()));
            hooks(&policies, &Forms::default().updated(bindings, |object| Binding::new(object)))
        };
        let manifests = loader.load(plugin, directory, kinds, compile)?;
        Ok(Hooks { manifests, ..self })
    }

    /// Whether any policy may apply to a request.
    pub(super) fn handle(&self, request: &AdmissionRequest<'_>) -> bool {
        !is_review(request.resource) && (self.manifests.is_some() || !is_policy(request.resource))
    }

    /// The policies in force for a request.
    ///
    /// # Errors
    /// When they are not cached and cannot be read from the store.
    pub(super) async fn present(&self, request: &AdmissionRequest<'_>) -> Result<PresentHooks<E>, Status> {
        let manifests = self.manifests.as_ref().map(|manifests| manifests.in_force());
        if is_policy(request.resource) {
            return Ok(PresentHooks { manifests, configured: None });
        }
        let compile = |last: &CompiledPolicies<E>, [bindings, policies]: [Vec<Arc<Value>>; 2]| {
            let policies = last.policies.updated(policies, |object| Policy::new(object.clone()));
            let bindings = last.bindings.updated(bindings, |object| Binding::new(object));
            CompiledPolicies { hooks: hooks(&policies, &bindings), policies, bindings }
        };
        let configured = Some(self.kept.current(request, compile).await?);
        Ok(PresentHooks { manifests, configured })
    }
}

fn hooks<E>(policies: &Forms<Policy<E>>, bindings: &Forms<Binding>) -> Vec<Hook<E>> {
    let mut by_policy: HashMap<&str, Vec<Arc<Binding>>> = HashMap::new();
    for binding in bindings.iter() {
        by_policy.entry(&binding.policy).or_default().push(binding.clone());
    }
    let hook = |policy: &Arc<Policy<E>>| {
        let bindings = by_policy.remove(&*policy.name)?;
        Some(Hook { policy: policy.clone(), bindings })
    };
    policies.iter().filter_map(hook).collect()
}
