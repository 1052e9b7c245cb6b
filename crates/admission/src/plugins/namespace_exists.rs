//! `NamespaceExists`: refuses requests in namespaces that do not exist
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#namespaceexists>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{GroupResource, Status, StatusReason};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug)]
pub struct NamespaceExists {
    namespaces: GroupResource,
}

impl Default for NamespaceExists {
    fn default() -> NamespaceExists {
        NamespaceExists { namespaces: GroupResource::new("", "namespaces") }
    }
}

impl AdmissionPlugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation != Operation::Connect
            && !request.namespace.is_empty()
            && !request.is_of("", "namespaces")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match request.get(&self.namespaces, "", request.namespace).await {
                Ok(_) => Ok(()),
                Err(status) if status.reason == StatusReason::NotFound => Err(status),
                Err(status) => Err(Status::internal_error(status.message)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn the_namespace_has_to_exist() {
        let objects = Objects::new([("namespaces", json!({"metadata": {"name": "a"}}))]);
        let create = |namespace: &str| {
            let pod = json!({"metadata": {"name": "p", "namespace": namespace}});
            admit(&NamespaceExists::default(), &objects, Operation::Create, "pods", "", pod, None).map(drop)
        };
        assert_eq!(create("a"), Ok(()));
        assert_eq!(create("b").unwrap_err(), "namespaces \"b\" not found");
    }
}
