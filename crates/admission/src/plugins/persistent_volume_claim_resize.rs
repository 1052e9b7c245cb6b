//! `PersistentVolumeClaimResize`: allows a claim to grow only when it is bound and its class allows expansion
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#persistentvolumeclaimresize>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{GroupResource, Quantity, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The plugin.
#[derive(Debug)]
pub struct PersistentVolumeClaimResize {
    classes: GroupResource,
}

impl Default for PersistentVolumeClaimResize {
    fn default() -> PersistentVolumeClaimResize {
        PersistentVolumeClaimResize { classes: GroupResource::new("storage.k8s.io", "storageclasses") }
    }
}

impl AdmissionPlugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Update && request.is_for("", "persistentvolumeclaims")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(old) = request.old_object.filter(|old| size(&request.object) > size(old)) else {
                return Ok(());
            };
            if old.str_at("status.phase") != "Bound" {
                return Err(request.forbidden("Only bound persistent volume claims can be expanded"));
            }
            let (class, old_class) = (class_of(&request.object), class_of(old));
            if !class.is_empty() && class == old_class {
                let class = request.find(&self.classes, "", class).await?;
                if class.is_some_and(|class| class.bool_at("allowVolumeExpansion")) {
                    return Ok(());
                }
            }
            Err(request.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                 support resize",
            ))
        })
    }
}

fn size(claim: &Value) -> Quantity {
    let requests = claim.map_at("spec.resources.requests");
    requests.get("storage").and_then(|size| Quantity::from_tree(size).ok()).unwrap_or_default()
}

fn class_of(claim: &Value) -> &str {
    claim.annotation(CLASS_ANNOTATION).unwrap_or_else(|| claim.str_at("spec.storageClassName"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn claims_grow_when_bound_and_allowed() {
        let classes = [
            ("storageclasses", json!({"metadata": {"name": "grows"}, "allowVolumeExpansion": true})),
            ("storageclasses", json!({"metadata": {"name": "fixed"}})),
        ];
        let objects = Objects::new(classes);
        let claim = |size: &str, class: &str, phase: &str| {
            json!({
                "metadata": {"name": "c", "namespace": "n"},
                "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}},
                "status": {"phase": phase},
            })
        };
        let check = |size: &str, class: &str, phase: &str, refused: &str| {
            let old = claim("1Gi", class, phase);
            let plugin = PersistentVolumeClaimResize::default();
            let new = claim(size, class, phase);
            let result =
                admit(&plugin, &objects, Operation::Update, "persistentvolumeclaims", "", new, Some(&old));
            let message = result.err().unwrap_or_default();
            assert!(message.contains(refused) && message.is_empty() == refused.is_empty(), "{message}");
        };
        check("1024Mi", "fixed", "Bound", "");
        check("2Gi", "grows", "Bound", "");
        check("2Gi", "grows", "Pending", "Only bound");
        check("2Gi", "fixed", "Bound", "only dynamically provisioned");
        check("2Gi", "", "Bound", "only dynamically provisioned");
    }
}
