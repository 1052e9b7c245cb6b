//! `StorageObjectInUseProtection`: adds a finalizer to new claims and volumes, which a controller removes when they are
//! no longer in use
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#storageobjectinuseprotection>).

use super::pods::push;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Status, meta::ObjectMeta};
use pintle_registry::BoxFuture;
use std::future::ready;

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct StorageObjectInUseProtection;

impl AdmissionPlugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && finalizer(request).is_some()
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        if let Some(finalizer) = finalizer(request).filter(|name| !request.object.finalizers().contains(name))
        {
            push(request.object.to_mut(), "metadata.finalizers", finalizer.into());
        }
        Box::pin(ready(Ok(())))
    }
}

fn finalizer(request: &AdmissionRequest<'_>) -> Option<&'static str> {
    const KINDS: [(&str, &str, &str); 3] = [
        ("", "persistentvolumes", "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
    ];
    let is_known = |group: &str| group.is_empty() || enabled(Gate::VolumeAttributesClass);
    let of_kind =
        KINDS.into_iter().find(|(group, resource, _)| request.is_for(group, resource) && is_known(group));
    of_kind.map(|(_, _, finalizer)| finalizer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn claims_and_volumes_are_protected_once() {
        for (resource, finalizer) in [
            ("persistentvolumes", "kubernetes.io/pv-protection"),
            ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ] {
            let mut object = json!({"metadata": {"name": "a"}});
            for _ in 0..2 {
                let plugin = StorageObjectInUseProtection;
                object = admit(&plugin, &Objects::default(), Operation::Create, resource, "", object, None)
                    .unwrap();
                assert_eq!(object["metadata"]["finalizers"], json!([finalizer]));
            }
        }
    }
}
