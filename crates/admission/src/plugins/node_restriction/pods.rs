//! The pods of a node: it creates and deletes mirror pods, and updates the status of its pods and evicts them.

use super::{api_references::api_reference, lookup::find};
use crate::{AdmissionRequest, Operation, plugins::pods::is_mirror};
use pintle_go_forms::quote;
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};

pub(super) async fn admit(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    match request.subresource {
        "" => admit_pod(request, node).await,
        "status" => admit_status(request, node),
        "eviction" => admit_eviction(request, node).await,
        other => Err(request.forbidden(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quote(other)
        ))),
    }
}

async fn admit_pod(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    match request.operation {
        Operation::Create => admit_create(request, node).await,
        Operation::Delete => {
            let is_own = request.old_object.is_some_and(|pod| pod.str_at("spec.nodeName") == node);
            check(request, node, is_own, "can only delete pods with spec.nodeName set to itself")
        }
        other => Err(request.forbidden(format!(
            "unexpected operation {}, node {} can only create and delete mirror pods",
            quote(other.as_str()),
            quote(node)
        ))),
    }
}

/// Refuses with a message about the node unless `is_allowed`.
fn check(request: &AdmissionRequest<'_>, node: &str, is_allowed: bool, why: &str) -> Result<(), Status> {
    if is_allowed { Ok(()) } else { Err(request.forbidden(format!("node {} {why}", quote(node)))) }
}

async fn admit_create(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    let pod = &*request.object;
    if !is_mirror(pod) {
        return Err(request.forbidden(format!(
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node {} can only create mirror pods",
            quote(node)
        )));
    }
    let check = |is_allowed: bool, why: &str| check(request, node, is_allowed, why);
    check(pod.str_at("spec.nodeName") == node, "can only create pods with spec.nodeName set to itself")?;
    let owner = match pod.items_at("metadata.ownerReferences") {
        [owner] => owner,
        [] => return check(false, "can only create pods with an owner reference set to itself"),
        _ => return check(false, "can only create pods with a single owner reference set to itself"),
    };
    let is_own =
        owner.str_at("apiVersion") == "v1" && owner.str_at("kind") == "Node" && owner.str_at("name") == node;
    check(is_own, "can only create pods with an owner reference set to itself")?;
    check(
        owner.bool_at("controller"),
        "can only create pods with a controller owner reference set to itself",
    )?;
    check(!owner.bool_at("blockOwnerDeletion"), "must not set blockOwnerDeletion on an owner reference")?;
    let object = find(request, "nodes", "", node).await?;
    let (expected, actual) = (owner.str_at("uid"), object.uid());
    if expected != actual {
        return Err(request.forbidden(format!("node {node} UID mismatch: expected {expected} got {actual}")));
    }
    match api_reference(pod) {
        Ok(None) => Ok(()),
        Ok(Some(referenced)) => check(false, &format!("can not create pods that reference {referenced}")),
        Err(error) => {
            Err(request.forbidden(format!("error checking mirror pod for API references: {error}")))
        }
    }
}

fn admit_status(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    let Some(old) = request.old_object.filter(|_| request.operation == Operation::Update) else {
        return Err(request.forbidden(format!("unexpected operation {}", quote(request.operation.as_str()))));
    };
    let check = |is_allowed: bool, why: &str| check(request, node, is_allowed, why);
    let pod = &*request.object;
    let is_own = old.str_at("spec.nodeName") == node;
    check(is_own, "can only update pod status for pods with spec.nodeName set to itself")?;
    let same_labels = pod.map_at("metadata.labels") == old.map_at("metadata.labels");
    check(same_labels, "cannot update labels through pod status")?;
    let claims = |pod: &Value| {
        let statuses = pod.items_at("status.resourceClaimStatuses").iter();
        let parts =
            statuses.map(|own| (own.str_at("name").to_owned(), own.field("resourceClaimName").cloned()));
        parts.collect::<Vec<_>>()
    };
    check(claims(pod) == claims(old), "cannot update resource claim statues")?;
    let extended = "status.extendedResourceClaimStatus";
    check(pod.at(extended) == old.at(extended), "cannot update extended resource claim status")
}

async fn admit_eviction(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    if request.operation != Operation::Create {
        return Err(request.forbidden(format!("unexpected operation {}", request.operation.as_str())));
    }
    let name = [request.name, request.object.name()].into_iter().find(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(request.forbidden("could not determine pod from request data"));
    };
    let pod = find(request, "pods", request.namespace, name).await?;
    match pod.str_at("spec.nodeName") == node {
        true => Ok(()),
        false => {
            Err(request
                .forbidden(format!("node {node} can only evict pods with spec.nodeName set to itself")))
        }
    }
}
