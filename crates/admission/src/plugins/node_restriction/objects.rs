//! The other objects of a node: volume claims, its lease, its `CSINode`, its resource slices and certificates.

use crate::{AdmissionRequest, Operation, plugins::certificate_subject_restriction::parse_request};
use pintle_go_forms::quote;
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta, validation::semantically_equal};

/// Admits updates of a claim's status that change the node's own measurements only.
pub(super) fn admit_claim(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    const OWN: [&str; 6] = [
        "metadata.managedFields",
        "metadata.resourceVersion",
        "status.allocatedResourceStatuses",
        "status.allocatedResources",
        "status.capacity",
        "status.conditions",
    ];
    if request.subresource != "status" {
        return Err(request.forbidden("may only update PVC status"));
    }
    let Some(old) = request.old_object.filter(|_| request.operation == Operation::Update) else {
        return Err(request.forbidden(format!("unexpected operation {}", quote(request.operation.as_str()))));
    };
    let without_own = |claim: &Value| {
        let mut claim = claim.clone();
        for path in OWN {
            claim.remove_at(path);
        }
        claim
    };
    let (new, old) = (without_own(&request.object), without_own(old));
    if !semantically_equal(&new, &old) {
        return Err(request.forbidden(format!(
            "node {} is not allowed to update fields other than status.quantity and status.conditions: {}",
            quote(node),
            pintle_internal_form::difference(&old, &new, "core.PersistentVolumeClaim")
        )));
    }
    Ok(())
}

/// The name of the object of a request: a create has it in its body only.
fn name<'a>(request: &'a AdmissionRequest<'_>) -> &'a str {
    match request.operation {
        Operation::Create => request.object.name(),
        _ => request.name,
    }
}

pub(super) fn admit_lease(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    if request.namespace != "kube-node-lease" {
        return Err(request.forbidden("can only access leases in the \"kube-node-lease\" system namespace"));
    }
    match name(request) == node {
        true => Ok(()),
        false => {
            Err(request.forbidden("can only access node lease with the same name as the requesting node"))
        }
    }
}

pub(super) fn admit_csi_node(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    match name(request) == node {
        true => Ok(()),
        false => Err(request.forbidden("can only access CSINode with the same name as the requesting node")),
    }
}

/// Admits creates and deletes of the node's own slices, each one of a collection. The node authorizer, which does not see the
/// object, decides about other requests.
pub(super) fn admit_resource_slice(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    let (slice, verb) = match request.operation {
        Operation::Create => (Some(&*request.object), "create"),
        Operation::Delete => (request.old_object, "delete"),
        _ => return Ok(()),
    };
    match slice.is_some_and(|slice| slice.str_at("spec.nodeName") == node) {
        true => Ok(()),
        false => Err(request.forbidden(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        ))),
    }
}

/// Admits requests for certificates with the node's own name only.
pub(super) fn admit_certificate_signing_request(
    request: &AdmissionRequest<'_>,
    node: &str,
) -> Result<(), Status> {
    const SIGNERS: [&str; 2] =
        ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];
    if request.operation != Operation::Create || !SIGNERS.contains(&request.object.str_at("spec.signerName"))
    {
        return Ok(());
    }
    let wanted = format!("system:node:{node}");
    let is_own = parse_request(request.object.str_at("spec.request"), |info| {
        let names = info.subject.iter_common_name();
        names.last().and_then(|name| name.as_str().ok()) == Some(wanted.as_str())
    });
    match is_own {
        None => Err(request.forbidden("unable to parse csr: PEM block type must be CERTIFICATE REQUEST")),
        Some(true) => Ok(()),
        Some(false) => Err(request.forbidden(format!("can only create a node CSR with CN={wanted}"))),
    }
}
