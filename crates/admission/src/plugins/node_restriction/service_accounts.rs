//! The tokens that a node requests: each is for a service account of one of its pods, and for an audience that the pod
//! uses.

use super::lookup::find;
use crate::{AdmissionRequest, Operation};
use pintle_auth::authz::{Attributes, Decision};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, meta::ObjectMeta, status};
use std::sync::Arc;

pub(super) async fn admit(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    if request.operation != Operation::Create || request.subresource != "token" {
        return Ok(());
    }
    let bound = request.object.at("spec.boundObjectRef");
    let of_bound = |field: &str| bound.map_or("", |bound| bound.str_at(field));
    let (name, uid) = (of_bound("name"), of_bound("uid"));
    if of_bound("apiVersion") != "v1" || of_bound("kind") != "Pod" || name.is_empty() {
        return Err(request.forbidden("node requested token not bound to a pod"));
    }
    if uid.is_empty() {
        return Err(request.forbidden("node requested token with a pod binding without a uid"));
    }
    let pod = find(request, "pods", request.namespace, name).await?;
    if uid != pod.uid() {
        return Err(request.forbidden(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        )));
    }
    if pod.str_at("spec.nodeName") != node {
        return Err(request.forbidden("node requested token bound to a pod scheduled on a different node"));
    }
    match enabled(Gate::ServiceAccountNodeAudienceRestriction) {
        true => admit_audiences(request, &pod).await,
        false => Ok(()),
    }
}

/// Admits the audiences of a token that is bound to this pod.
async fn admit_audiences(request: &AdmissionRequest<'_>, pod: &Value) -> Result<(), Status> {
    let audience = match request.object.items_at("spec.audiences") {
        [] => "",
        [only] => only.as_str().unwrap_or_default(),
        _ => return Err(request.forbidden("node may only request 0 or 1 audiences")),
    };
    check_audience(request, pod, audience).await.map_err(|why| request.forbidden(why))
}

/// Admits an audience that the pod uses, or that the node is authorized to request.
async fn check_audience(request: &AdmissionRequest<'_>, pod: &Value, audience: &str) -> Result<(), String> {
    let quoted = quote(audience);
    let is_used = uses_audience(request, pod, audience).await;
    if is_used.map_err(|error| format!("error validating audience {quoted}: {error}"))? {
        return Ok(());
    }
    let user = request.context.user;
    let attributes = Attributes {
        version: "v1",
        resource: audience,
        namespace: request.namespace,
        name: request.name,
        ..Attributes::of(user, "request-serviceaccounts-token-audience")
    };
    let verdict = request.context.authorizer.authorize(&attributes).await;
    match verdict.decision {
        Decision::Allow => Ok(()),
        _ => Err(format!(
            "audience {quoted} not found in pod spec volume, {} is not authorized to request tokens for this audience",
            user.name
        )),
    }
}

/// Whether a volume of the pod gets tokens for the audience: a projected one, or one of a CSI driver that requests them.
async fn uses_audience(request: &AdmissionRequest<'_>, pod: &Value, audience: &str) -> Result<bool, String> {
    let mut errors = Vec::new();
    for volume in pod.items_at("spec.volumes") {
        let tokens = volume.items_at("projected.sources").iter();
        if tokens
            .filter_map(|source| source.field("serviceAccountToken"))
            .any(|own| own.str_at("audience") == audience)
        {
            return Ok(true);
        }
        let driver = match driver_of(request, pod, volume).await {
            Ok(Some(driver)) => {
                lookup(request, ("storage.k8s.io", "csidrivers", "csidriver"), "", &driver).await
            }
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match driver {
            Ok(driver) => {
                let mut requests = driver.items_at("spec.tokenRequests").iter();
                if requests.any(|own| own.str_at("audience") == audience) {
                    return Ok(true);
                }
            }
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(false),
        false => Err(status::aggregate(errors.into_iter())),
    }
}

/// The name of the CSI driver of a volume; `None` when it has none.
async fn driver_of(
    request: &AdmissionRequest<'_>,
    pod: &Value,
    volume: &Value,
) -> Result<Option<String>, String> {
    let claim = if volume.at("ephemeral.volumeClaimTemplate").is_some() {
        format!("{}-{}", pod.name(), volume.str_at("name"))
    } else if let Some(claim) = volume.field("persistentVolumeClaim") {
        claim.str_at("claimName").to_owned()
    } else {
        return Ok(driver_of_source(volume).map(str::to_owned));
    };
    let claims = ("", "persistentvolumeclaims", "persistentvolumeclaim");
    let claim = lookup(request, claims, request.namespace, &claim).await?;
    let volumes = ("", "persistentvolumes", "persistentvolume");
    let volume = lookup(request, volumes, "", claim.str_at("spec.volumeName")).await?;
    Ok(volume.field("spec").and_then(driver_of_source).map(str::to_owned))
}

/// The CSI driver of a volume source: its own, or the replacement of one of Kubernetes' former drivers.
fn driver_of_source(source: &Value) -> Option<&str> {
    const MIGRATED: [(&str, &str); 7] = [
        ("awsElasticBlockStore", "ebs.csi.aws.com"),
        ("azureDisk", "disk.csi.azure.com"),
        ("azureFile", "file.csi.azure.com"),
        ("cinder", "cinder.csi.openstack.org"),
        ("gcePersistentDisk", "pd.csi.storage.gke.io"),
        ("portworxVolume", "pxd.portworx.com"),
        ("vsphereVolume", "csi.vsphere.vmware.com"),
    ];
    let migrated = || MIGRATED.iter().find(|(own, _)| source.field(own).is_some()).map(|(_, driver)| *driver);
    source.field("csi").map(|own| own.str_at("driver")).or_else(migrated).filter(|driver| !driver.is_empty())
}

/// Returns an object, or the message that it cannot be found; a resource has its group, its name and its singular.
async fn lookup(
    request: &AdmissionRequest<'_>,
    (group, resource, singular): (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Arc<Value>, String> {
    let found = request.get(&GroupResource::new(group, resource), namespace, name).await;
    found.map_err(|status| match status.reason {
        StatusReason::NotFound => Status::not_found(&GroupResource::new(group, singular), name).message,
        _ => status.message,
    })
}
