//! The policies in force, in a compiled form that is kept while they are unchanged.

use super::{binding::Binding, params::ParamKind};
use crate::matching::Matcher;
use parking_lot::Mutex;
use pintle_admission::{AdmissionRequest, ListState};
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use std::{
    collections::HashMap,
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
    object: Arc<Value>,
    evaluator: OnceLock<E>,
}

impl<E: Evaluator> Policy<E> {
    fn new(object: Arc<Value>) -> Policy<E> {
        let constraints = object.at("spec.matchConstraints").unwrap_or(&Value::Null);
        Policy {
            name: object.name().into(),
            matcher: Matcher::of_match_resources(constraints),
            param_kind: object.at("spec.paramKind").map(ParamKind::new),
            ignores_failures: object.str_at("spec.failurePolicy") == "Ignore",
            evaluator: OnceLock::new(),
            object,
        }
    }

    /// The compiled expressions. They are compiled for the first request that the policy matches.
    pub(super) fn evaluator(&self) -> &E {
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
    policies: GroupResource,
    bindings: GroupResource,
    last: Mutex<Last<E>>,
}

/// The policies and bindings, and the state of their caches from which they were read.
struct Last<E> {
    compiled: Arc<Compiled<E>>,
    states: Option<[ListState; 2]>,
}

/// All policies and bindings of one moment.
pub(super) struct Compiled<E> {
    policies: Vec<(Arc<Value>, Arc<Policy<E>>)>,
    bindings: Vec<(Arc<Value>, Arc<Binding>)>,
    hooks: Vec<Hook<E>>,
}

impl<E> Compiled<E> {
    /// The policies that have bindings, by name.
    pub(super) fn hooks(&self) -> &[Hook<E>] {
        &self.hooks
    }
}

impl<E: Evaluator> Hooks<E> {
    /// The policies and bindings of these resources of `admissionregistration.k8s.io`.
    pub(super) fn new(policies: &str, bindings: &str) -> Hooks<E> {
        let resource = |resource| GroupResource::new("admissionregistration.k8s.io", resource);
        let nothing = Compiled { policies: Vec::new(), bindings: Vec::new(), hooks: Vec::new() };
        Hooks {
            policies: resource(policies),
            bindings: resource(bindings),
            last: Mutex::new(Last { compiled: Arc::new(nothing), states: None }),
        }
    }

    /// The policies in force.
    ///
    /// # Errors
    /// When they are not cached and cannot be read from the store.
    pub(super) async fn current(&self, request: &AdmissionRequest<'_>) -> Result<Arc<Compiled<E>>, Status> {
        let last = {
            let last = self.last.lock();
            if let Some([policies, bindings]) = &last.states
                && request.lister.is_in_state(&self.policies, policies)
                && request.lister.is_in_state(&self.bindings, bindings)
            {
                return Ok(last.compiled.clone());
            }
            last.compiled.clone()
        };
        // The states are older than the lists, if they differ at all, so that no change is missed.
        let states = request.lister.state(&self.policies).zip(request.lister.state(&self.bindings));
        let states = states.map(<[ListState; 2]>::from);
        let bindings = request.list(&self.bindings, "").await?;
        let policies = request.list(&self.policies, "").await?;
        if are_same(&last.policies, &policies) && are_same(&last.bindings, &bindings) {
            self.last.lock().states = states;
            return Ok(last);
        }
        let policies = keep(&last.policies, policies, |object| Policy::new(object.clone()));
        let bindings = keep(&last.bindings, bindings, |object| Binding::new(object));
        let compiled = Arc::new(Compiled { hooks: hooks(&policies, &bindings), policies, bindings });
        *self.last.lock() = Last { compiled: compiled.clone(), states };
        Ok(compiled)
    }
}

fn hooks<E>(
    policies: &[(Arc<Value>, Arc<Policy<E>>)],
    bindings: &[(Arc<Value>, Arc<Binding>)],
) -> Vec<Hook<E>> {
    let mut by_policy: HashMap<&str, Vec<Arc<Binding>>> = HashMap::new();
    for (_, binding) in bindings {
        by_policy.entry(&binding.policy).or_default().push(binding.clone());
    }
    let hook = |(_, policy): &(_, Arc<Policy<E>>)| {
        let bindings = by_policy.remove(&*policy.name)?;
        Some(Hook { policy: policy.clone(), bindings })
    };
    policies.iter().filter_map(hook).collect()
}

fn are_same<T>(kept: &[(Arc<Value>, Arc<T>)], objects: &[Arc<Value>]) -> bool {
    kept.len() == objects.len() && kept.iter().zip(objects).all(|((own, _), other)| is_same(own, other))
}

/// The forms of all objects; the kept one for objects that are unchanged.
fn keep<T>(
    kept: &[(Arc<Value>, Arc<T>)],
    objects: Vec<Arc<Value>>,
    read: impl Fn(&Arc<Value>) -> T,
) -> Vec<(Arc<Value>, Arc<T>)> {
    let by_name: HashMap<&str, &(Arc<Value>, Arc<T>)> =
        kept.iter().map(|entry| (entry.0.name(), entry)).collect();
    let form = |object: Arc<Value>| match by_name.get(object.name()) {
        Some((own, form)) if is_same(own, &object) => (own.clone(), form.clone()),
        _ => {
            let form = Arc::new(read(&object));
            (object, form)
        }
    };
    objects.into_iter().map(form).collect()
}

/// Whether two objects are one, in one state. An object that the cache has decoded again is another tree.
fn is_same(one: &Arc<Value>, other: &Arc<Value>) -> bool {
    let field = |path: &str| one.str_at(path) == other.str_at(path);
    Arc::ptr_eq(one, other) || field("metadata.uid") && field("metadata.resourceVersion")
}
