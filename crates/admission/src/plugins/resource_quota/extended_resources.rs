//! The extended resources through which pods may request devices, for the quotas of resource claims
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/#extended-resource>).
//!
//! A claim that the scheduler made for the extended resources of a pod is charged only for what it requests beyond that
//! pod, because the pod was charged before.

use super::pod;
use crate::{AdmissionRequest, Operation, plugins::quantities::Quantities};
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use std::collections::BTreeMap;

/// Marks the claims that the scheduler makes for extended resources.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// The extended resources of device classes, and the pods whose extended resources the claims of a request serve.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtendedResources {
    /// The extended resource that each device class names, if it names one. Each class has an implicit one, too.
    classes: BTreeMap<String, Option<String>>,
    /// The usage of pods, by their UID.
    pods: BTreeMap<String, Quantities>,
}

impl ExtendedResources {
    /// Those of these device classes, without pods.
    pub(super) fn of<'a>(classes: impl IntoIterator<Item = &'a Value>) -> ExtendedResources {
        let named = |class: &Value| {
            let resource = class.str_at("spec.extendedResourceName");
            (class.name().to_owned(), (!resource.is_empty()).then(|| resource.to_owned()))
        };
        ExtendedResources { classes: classes.into_iter().map(named).collect(), pods: BTreeMap::new() }
    }

    /// Those that the claims of a request may be charged for.
    pub(super) async fn for_claims(request: &AdmissionRequest<'_>) -> Result<ExtendedResources, Status> {
        let classes = request.list(&GroupResource::new("resource.k8s.io", "deviceclasses"), "").await?;
        let mut resources = ExtendedResources::of(classes.iter().map(AsRef::as_ref));
        for claim in [Some(&*request.object), request.old_object].into_iter().flatten() {
            if let Some((uid, usage)) = usage_of_pod(claim, request).await? {
                resources.pods.insert(uid, usage);
            }
        }
        Ok(resources)
    }

    /// Whether a device class serves the extended resource.
    pub(super) fn serve(&self, resource: &str) -> bool {
        match resource.strip_prefix(pod::DEVICE_CLASS) {
            Some(class) if self.classes.contains_key(class) => true,
            _ => self.classes.values().flatten().any(|named| named == resource),
        }
    }

    /// The extended resources by which pods may request devices of a class.
    pub(super) fn of_class<'a>(&'a self, class: &str) -> impl Iterator<Item = String> + use<'a> {
        let named = self.classes.get(class).and_then(Option::as_ref).cloned();
        [Some(format!("{}{class}", pod::DEVICE_CLASS)), named].into_iter().flatten()
    }

    /// The usage of the pod that a claim was made for. That was charged with the pod.
    pub(super) fn charged_with_pod(&self, claim: &Value) -> Option<&Quantities> {
        self.pods.get(controlling_pod(claim)?.str_at("uid"))
    }
}

/// The reference of a claim to the pod that the scheduler made it for.
fn controlling_pod(claim: &Value) -> Option<&Value> {
    if claim.annotation(ANNOTATION) != Some("true") {
        return None;
    }
    claim
        .items_at("metadata.ownerReferences")
        .iter()
        .find(|owner| owner.bool_at("controller"))
        .filter(|owner| owner.str_at("kind") == "Pod" && owner.str_at("apiVersion") == "v1")
}

/// The UID and the usage of the pod that a claim was made for, unless the pod has another such claim.
async fn usage_of_pod(
    claim: &Value,
    request: &AdmissionRequest<'_>,
) -> Result<Option<(String, Quantities)>, Status> {
    let Some(owner) = controlling_pod(claim) else { return Ok(None) };
    let found =
        request.find(&GroupResource::new("", "pods"), request.namespace, owner.str_at("name")).await?;
    let Some(pod) = found.filter(|pod| pod.str_at("metadata.uid") == owner.str_at("uid")) else {
        return Ok(None);
    };
    let is_its_claim = match pod.at("status.extendedResourceClaimStatus") {
        Some(status) => status.str_at("resourceClaimName") == claim.name(),
        None => is_first_of_pod(claim, owner.str_at("uid"), request).await?,
    };
    let usage = || pod::usage(&pod, request.context.now);
    Ok(is_its_claim.then(|| (owner.str_at("uid").to_owned(), usage())))
}

/// Whether no older claim was made for the same pod.
async fn is_first_of_pod(claim: &Value, pod: &str, request: &AdmissionRequest<'_>) -> Result<bool, Status> {
    let age =
        |claim: &Value| (claim.str_at("metadata.creationTimestamp").to_owned(), claim.name().to_owned());
    let is_older = |other: &Value| request.operation == Operation::Create || age(other) < age(claim);
    let is_of_pod = |other: &Value| controlling_pod(other).is_some_and(|owner| owner.str_at("uid") == pod);
    let is_before = |other: &Value| is_of_pod(other) && is_older(other);
    let claims = GroupResource::new("resource.k8s.io", "resourceclaims");
    let registry = request.context.registry;
    Ok(registry.list_matching(&claims, request.namespace, 1, &is_before).await?.is_empty())
}
