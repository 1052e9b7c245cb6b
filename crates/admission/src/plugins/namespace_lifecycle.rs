//! `NamespaceLifecycle`: refuses creates in a namespace that does not exist or is terminating, and deletes of the
//! system namespaces
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#namespacelifecycle>).
//!
//! The cache may still show a namespace as active after its deletion. The plugin therefore remembers deletes for a
//! while, and reads these namespaces from the store.

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt};
use pintle_registry::BoxFuture;
use std::{collections::HashMap, sync::Arc};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// The time for which a deleted namespace is read from the store.
const LIVE_LOOKUP: SignedDuration = SignedDuration::from_secs(30);

/// The plugin.
#[derive(Debug)]
pub struct NamespaceLifecycle {
    namespaces: GroupResource,
    /// Recently deleted namespaces, with the time until which they are read from the store.
    deleted: Mutex<HashMap<String, Timestamp>>,
}

impl Default for NamespaceLifecycle {
    fn default() -> NamespaceLifecycle {
        NamespaceLifecycle { namespaces: GroupResource::new("", "namespaces"), deleted: Mutex::default() }
    }
}

impl AdmissionPlugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        if request.is_of("", "namespaces") {
            return request.operation == Operation::Delete;
        }
        matches!(request.operation, Operation::Create | Operation::Update)
            && !request.namespace.is_empty()
            // Access reviews do not disclose whether a namespace exists.
            && !request.is_of("authorization.k8s.io", "localsubjectaccessreviews")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.operation == Operation::Delete {
                return self.admit_deletion(request);
            }
            let namespace = self.namespace(request).await?;
            if request.operation == Operation::Create && is_terminating(&namespace) {
                let namespace = request.namespace;
                return Err(request
                    .forbidden(format!(
                        "unable to create new content in namespace {namespace} because it is being terminated"
                    ))
                    .with_cause(
                        "NamespaceTerminating",
                        format!("namespace {namespace} is being terminated"),
                        "metadata.namespace",
                    ));
            }
            Ok(())
        })
    }
}

impl NamespaceLifecycle {
    fn admit_deletion(&self, request: &AdmissionRequest<'_>) -> Result<(), Status> {
        if IMMORTAL.contains(&request.name) {
            return Err(Status::forbidden(
                &self.namespaces,
                request.name,
                "this namespace may not be deleted",
            ));
        }
        let now = request.context.now;
        let mut deleted = self.deleted.lock();
        deleted.retain(|_, until| *until > now);
        deleted.insert(request.name.to_owned(), now.checked_add(LIVE_LOOKUP).unwrap_or(Timestamp::MAX));
        Ok(())
    }

    async fn namespace(&self, request: &AdmissionRequest<'_>) -> Result<Arc<Value>, Status> {
        let name = request.namespace;
        let cached = request.lister.get(&self.namespaces, "", name);
        match cached {
            Some(namespace) if is_terminating(&namespace) || !self.was_deleted(request) => Ok(namespace),
            _ => match request.context.registry.get(&self.namespaces, "", name).await {
                Ok(namespace) => Ok(Arc::new(namespace)),
                Err(status) if status.reason == StatusReason::NotFound => Err(status),
                Err(status) => Err(Status::internal_error(status)),
            },
        }
    }

    fn was_deleted(&self, request: &AdmissionRequest<'_>) -> bool {
        let deleted = self.deleted.lock();
        deleted.get(request.namespace).is_some_and(|until| *until > request.context.now)
    }
}

fn is_terminating(namespace: &Value) -> bool {
    namespace.str_at("status.phase") == "Terminating"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn nothing_is_created_where_nothing_may_be() {
        let namespace = |name: &str, phase: &str| {
            ("namespaces", json!({"metadata": {"name": name}, "status": {"phase": phase}}))
        };
        let objects = Objects::new([namespace("live", "Active"), namespace("going", "Terminating")]);
        let check = |operation: Operation, resource: &str, namespace: &str, message: &str| {
            let object = json!({"metadata": {"name": "o", "namespace": namespace}});
            let plugin = NamespaceLifecycle::default();
            let result = admit(&plugin, &objects, operation, resource, "", object, None);
            assert_eq!(result.err().unwrap_or_default(), message);
        };
        check(Operation::Create, "configmaps", "live", "");
        check(Operation::Create, "nodes", "", "");
        check(Operation::Create, "configmaps", "none", "namespaces \"none\" not found");
        check(Operation::Update, "configmaps", "going", "");
        check(Operation::Delete, "configmaps", "none", "");
        check(
            Operation::Create,
            "configmaps",
            "going",
            "configmaps \"o\" is forbidden: unable to create new content in namespace going because it is being \
             terminated",
        );
    }

    #[test]
    fn some_namespaces_stay() {
        let check = |name: &str, allowed: bool| {
            let object = json!({"metadata": {"name": name, "namespace": name}});
            let plugin = NamespaceLifecycle::default();
            let objects = Objects::default();
            let result =
                admit(&plugin, &objects, Operation::Delete, "namespaces", "", object.clone(), Some(&object));
            assert_eq!(result.is_ok(), allowed, "{name}");
        };
        check("default", false);
        check("kube-system", false);
        check("kube-node-lease", true);
        check("mine", true);
    }
}
