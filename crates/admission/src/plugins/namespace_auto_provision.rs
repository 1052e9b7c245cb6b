//! `NamespaceAutoProvision`: creates the namespace of a create when it does not exist
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#namespaceautoprovision>).

use super::own_writes::write_options;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{GroupResource, Status, StatusReason, json};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug)]
pub struct NamespaceAutoProvision {
    namespaces: GroupResource,
}

impl Default for NamespaceAutoProvision {
    fn default() -> NamespaceAutoProvision {
        NamespaceAutoProvision { namespaces: GroupResource::new("", "namespaces") }
    }
}

impl AdmissionPlugin for NamespaceAutoProvision {
    fn name(&self) -> &'static str {
        "NamespaceAutoProvision"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create
            && !request.context.dry_run
            && !request.namespace.is_empty()
            && !request.is_of("", "namespaces")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let found = request.find(&self.namespaces, "", request.namespace).await;
            if found.map_err(|status| request.forbidden(status.message))?.is_some() {
                return Ok(());
            }
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": request.namespace},
            });
            let registry = request.context.registry;
            match registry.create(&self.namespaces, "", namespace, write_options()).await {
                Err(status) if status.reason != StatusReason::AlreadyExists => {
                    Err(request.forbidden(status.message))
                }
                _ => Ok(()),
            }
        })
    }
}
