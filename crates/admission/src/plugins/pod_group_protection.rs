//! `PodGroupProtection`: keeps a pod group from being deleted while pods refer to it
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::BoxFuture;
use std::future::ready;

const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct PodGroupProtection;

impl AdmissionPlugin for PodGroupProtection {
    fn name(&self) -> &'static str {
        "PodGroupProtection"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for("scheduling.k8s.io", "podgroups")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let mut finalizers: Vec<Value> = request.object.items_at("metadata.finalizers").to_vec();
        if finalizers.iter().all(|finalizer| finalizer.as_str() != Some(FINALIZER)) {
            finalizers.push(FINALIZER.into());
            request.object.to_mut().set("metadata.finalizers", finalizers);
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn new_pod_groups_get_one_finalizer() {
        let create = |metadata: Value| {
            let object = json!({"metadata": metadata});
            let objects = Objects::default();
            let object =
                admit(&PodGroupProtection, &objects, Operation::Create, "podgroups", "", object, None)
                    .unwrap();
            object.at("metadata.finalizers").cloned().unwrap()
        };
        assert_eq!(create(json!({})), json!([FINALIZER]));
        assert_eq!(create(json!({"finalizers": ["a"]})), json!(["a", FINALIZER]));
        assert_eq!(create(json!({"finalizers": [FINALIZER]})), json!([FINALIZER]));
    }
}
