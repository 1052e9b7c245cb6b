//! Selects how quotas count the objects of a resource.

use super::{claim, device_claim, extended_resources::ExtendedResources, pod, scopes, service};
use crate::plugins::quantities::{Quantities, count};
use crate::{AdmissionRequest, Operation};
use jiff::Timestamp;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{GroupVersionResource, Status, Value, ValueExt};

/// The way in which quotas count the objects of a resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Evaluator {
    /// Pods, by their compute resources.
    Pods,
    /// Services, by their node ports and load balancers.
    Services,
    /// Persistent volume claims, by their requested storage.
    PersistentVolumeClaims,
    /// Resource claims, by their requested devices; with the extended resources that serve them, once they are read.
    ResourceClaims(Option<ExtendedResources>),
    /// Other objects, by their number, under these names.
    Objects(Vec<String>),
}

impl Evaluator {
    pub(super) fn of(resource: &GroupVersionResource) -> Evaluator {
        let name = resource.resource.as_str();
        match (resource.group.as_str(), name) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::PersistentVolumeClaims,
            ("resource.k8s.io", "resourceclaims") if enabled(Gate::DynamicResourceAllocation) => {
                Evaluator::ResourceClaims(None)
            }
            ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
                Evaluator::Objects(vec![format!("count/{name}"), name.to_owned()])
            }
            ("", _) => Evaluator::Objects(vec![format!("count/{name}")]),
            (group, _) => Evaluator::Objects(vec![format!("count/{name}.{group}")]),
        }
    }

    /// Reads the other objects that the usage depends on.
    pub(super) async fn read_dependencies(&mut self, request: &AdmissionRequest<'_>) -> Result<(), Status> {
        if let Evaluator::ResourceClaims(extended) = self
            && enabled(Gate::DRAExtendedResource)
        {
            *extended = Some(ExtendedResources::for_claims(request).await?);
        }
        Ok(())
    }

    /// Whether requests of this kind may change the usage.
    pub(super) fn handles(&self, operation: Operation, subresource: &str) -> bool {
        match (operation, subresource) {
            (Operation::Create, "") => true,
            (Operation::Update, "") => !matches!(self, Evaluator::Objects(_)),
            (Operation::Update, "resize") => *self == Evaluator::Pods,
            (Operation::Update, "status") => *self == Evaluator::PersistentVolumeClaims,
            _ => false,
        }
    }

    /// Whether this request may change the usage: an update of a pod only does so by moving it between scopes.
    pub(super) fn may_change_usage(&self, request: &AdmissionRequest<'_>) -> bool {
        match request.old_object {
            Some(old) if *self == Evaluator::Pods && request.subresource.is_empty() => {
                scopes::is_terminating(old) != scopes::is_terminating(&request.object)
            }
            _ => true,
        }
    }

    /// Whether objects of this resource count for a quota resource.
    pub(super) fn counts(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => pod::counts(name),
            Evaluator::Services => service::counts(name),
            Evaluator::PersistentVolumeClaims => claim::counts(name),
            Evaluator::ResourceClaims(extended) => device_claim::counts(name, extended.as_ref()),
            Evaluator::Objects(names) => names.iter().any(|own| own == name),
        }
    }

    /// Whether the quota counts the object: it limits one of the object's resources, and the object is in all its
    /// scopes.
    pub(super) fn matches(&self, quota: &Value, object: &Value) -> bool {
        let is_in_scope =
            |scope: &str, operator: &str, values: &[Value]| self.is_in_scope(scope, operator, values, object);
        quota.map_at("status.hard").keys().any(|name| self.counts(name))
            && quota
                .items_at("spec.scopes")
                .iter()
                .all(|scope| is_in_scope(scope.as_str().unwrap_or_default(), "Exists", &[]))
            && quota.items_at("spec.scopeSelector.matchExpressions").iter().all(|expression| {
                let (scope, operator) = (expression.str_at("scopeName"), expression.str_at("operator"));
                is_in_scope(scope, operator, expression.items_at("values"))
            })
    }

    /// Whether the object is in a scope.
    pub(super) fn is_in_scope(&self, scope: &str, operator: &str, values: &[Value], object: &Value) -> bool {
        match self {
            Evaluator::Pods => scopes::holds_pod(scope, operator, values, object),
            Evaluator::PersistentVolumeClaims => scopes::holds_claim(scope, operator, values, object),
            Evaluator::Services | Evaluator::ResourceClaims(_) | Evaluator::Objects(_) => false,
        }
    }

    /// The message for fields that the object lacks and that the quota requires.
    pub(super) fn missing(&self, restricted: &[&str], object: &Value) -> Option<String> {
        match self {
            Evaluator::Pods => pod::missing(restricted, object),
            Evaluator::Services
            | Evaluator::PersistentVolumeClaims
            | Evaluator::ResourceClaims(_)
            | Evaluator::Objects(_) => None,
        }
    }

    /// The usage of the object.
    pub(super) fn usage(&self, object: &Value, now: Timestamp) -> Quantities {
        match self {
            Evaluator::Pods => pod::usage(object, now),
            Evaluator::Services => service::usage(object),
            Evaluator::PersistentVolumeClaims => claim::usage(object),
            Evaluator::ResourceClaims(extended) => device_claim::usage(object, extended.as_ref()),
            Evaluator::Objects(names) => names.iter().map(|name| (name.clone(), count(1))).collect(),
        }
    }
}
