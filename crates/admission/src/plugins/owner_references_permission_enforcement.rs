//! `OwnerReferencesPermissionEnforcement`: requires the permission to delete an object for changing its owners, and the
//! permission to update the finalizers of an owner for blocking its deletion
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement>).

use crate::{AdmissionPlugin, AdmissionRequest, KindMapping, Operation, RestMapper, Steps};
use pintle_auth::authz::{Attributes, Verdict};
use pintle_go_forms::quote;
use pintle_machinery::{GroupVersionKind, Status, Value, ValueExt, validation::semantically_equal};
use pintle_offload::Pace;
use pintle_registry::BoxFuture;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The plugin.
pub struct OwnerReferencesPermissionEnforcement {
    rest_mapper: Arc<dyn RestMapper>,
}

impl OwnerReferencesPermissionEnforcement {
    /// Creates the plugin.
    pub fn new(rest_mapper: Arc<dyn RestMapper>) -> OwnerReferencesPermissionEnforcement {
        OwnerReferencesPermissionEnforcement { rest_mapper }
    }

    /// The resources that an owner may be of.
    fn resources_of(&self, owner: &Value) -> Result<Vec<KindMapping>, String> {
        let (api_version, kind) = (owner.str_at("apiVersion"), owner.str_at("kind"));
        let (group, version) = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => {
                return Err(format!("unexpected GroupVersion string: {api_version}"));
            }
            Some(parts) => parts,
            None => ("", api_version),
        };
        let mappings = self.rest_mapper.mappings(&GroupVersionKind::new(group, version, kind));
        match mappings.is_empty() {
            false => Ok(mappings),
            true => Err(format!("no matches for kind {} in version {}", quote(kind), quote(api_version))),
        }
    }

    async fn check_blocked_owners(
        &self,
        request: &AdmissionRequest<'_>,
        blocked: &[&Value],
    ) -> Result<(), Status> {
        let everything = Attributes { group: "*", version: "*", name: "*", ..finalizers_of(request, "*") };
        if request.context.authorizer.authorize(&everything).await.is_allowed() {
            return Ok(());
        }
        // An object may have very many owners: each one is authorized once.
        let mut checked = HashSet::new();
        let mut pace = Pace::new();
        for owner in blocked {
            pace.breathe().await;
            let key = (owner.str_at("apiVersion"), owner.str_at("kind"), owner.str_at("name"));
            if !checked.insert(key) {
                continue;
            }
            let mappings = self.resources_of(owner).map_err(|error| {
                request.forbidden(format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {} Kind {}: \
                     {error}",
                    key.0, key.1
                ))
            })?;
            for KindMapping { resource, is_namespaced } in &mappings {
                let attributes = Attributes {
                    group: &resource.group,
                    version: &resource.version,
                    namespace: if *is_namespaced { request.namespace } else { "" },
                    name: key.2,
                    ..finalizers_of(request, &resource.resource)
                };
                let verdict = request.context.authorizer.authorize(&attributes).await;
                if !verdict.is_allowed() {
                    let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
                               finalizers on";
                    return Err(request.forbidden(format!("{why}: {}", shown(&verdict))));
                }
            }
        }
        Ok(())
    }
}

impl AdmissionPlugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    /// Updates of the status of pods cannot change owners.
    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        let is_pod_status = request.subresource == "status" && request.is_of("", "pods");
        matches!(request.operation, Operation::Create | Operation::Update) && !is_pod_status
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let owners = owners(&request.object);
            let before = request.old_object.map(self::owners);
            let is_unchanged = match before {
                None => owners.is_empty(),
                Some(before) => {
                    owners.len() == before.len()
                        && owners.iter().zip(before).all(|(new, old)| semantically_equal(new, old))
                }
            };
            if is_unchanged {
                return Ok(());
            }
            // The creator of an object could as well not create it.
            if request.operation != Operation::Create {
                let attributes = Attributes {
                    group: &request.resource.group,
                    version: &request.resource.version,
                    resource: &request.resource.resource,
                    subresource: request.subresource,
                    namespace: request.namespace,
                    name: request.name,
                    ..Attributes::of(request.context.user, "delete")
                };
                let verdict = request.context.authorizer.authorize(&attributes).await;
                if !verdict.is_allowed() {
                    let why = "cannot set an ownerRef on a resource you can't delete";
                    return Err(request.forbidden(format!("{why}: {}", shown(&verdict))));
                }
            }
            let blocked = newly_blocked(owners, before.unwrap_or_default());
            if blocked.is_empty() {
                return Ok(());
            }
            self.check_blocked_owners(request, &blocked).await
        })
    }
}

/// The attributes of an update of the finalizers of a resource's objects.
fn finalizers_of<'a>(request: &'a AdmissionRequest<'_>, resource: &'a str) -> Attributes<'a> {
    Attributes { resource, subresource: "finalizers", ..Attributes::of(request.context.user, "update") }
}

fn owners(object: &Value) -> &[Value] {
    object.items_at("metadata.ownerReferences")
}

fn is_blocked(owner: &Value) -> bool {
    owner.bool_at("blockOwnerDeletion")
}

/// The owners whose deletion is blocked now and was not before.
fn newly_blocked<'a>(owners: &'a [Value], before: &[Value]) -> Vec<&'a Value> {
    let were_blocked: HashMap<&str, bool> =
        before.iter().map(|owner| (owner.str_at("uid"), is_blocked(owner))).collect();
    let was_blocked = |owner: &Value| were_blocked.get(owner.str_at("uid")).copied().unwrap_or_default();
    owners.iter().filter(|owner| is_blocked(owner) && !was_blocked(owner)).collect()
}

/// Reason and error, as kube-apiserver prints them.
fn shown(verdict: &Verdict) -> String {
    let error = if verdict.error.is_empty() { "<nil>" } else { &verdict.error };
    format!("{}, {error}", verdict.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit_with};
    use pintle_auth::authz::{Authorizer, Decision};
    use pintle_machinery::{GroupVersionResource, json};
    use std::future::ready;

    struct Deployments;

    impl RestMapper for Deployments {
        fn mappings(&self, kind: &GroupVersionKind) -> Vec<KindMapping> {
            let resource = GroupVersionResource::new("apps", "v1", "deployments");
            let is_known = kind.kind == "Deployment" && kind.group == "apps";
            is_known.then_some(KindMapping { resource, is_namespaced: true }).into_iter().collect()
        }
    }

    /// Allows these verbs and resources.
    struct Allowed(&'static [&'static str]);

    impl Authorizer for Allowed {
        fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> pintle_auth::BoxFuture<'a, Verdict> {
            let Attributes { verb, resource, subresource, namespace, name, .. } = attributes;
            let text = format!("{verb} {resource}/{subresource} {namespace}/{name}");
            let decision =
                if self.0.contains(&text.as_str()) { Decision::Allow } else { Decision::NoOpinion };
            Box::pin(ready(Verdict::new(decision)))
        }
    }

    fn object(owners: Value) -> Value {
        json!({"metadata": {"name": "a", "namespace": "n", "ownerReferences": owners}})
    }

    fn owner(kind: &str, block: bool) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": block})
    }

    fn run(allowed: &'static [&'static str], new: Value, old: Option<Value>) -> Result<(), String> {
        let plugin = OwnerReferencesPermissionEnforcement::new(Arc::new(Deployments));
        let old = old.map(object);
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let objects = Objects::default();
        admit_with(
            &Allowed(allowed),
            &plugin,
            &objects,
            operation,
            "configmaps",
            "",
            object(new),
            old.as_ref(),
        )
        .map(drop)
    }

    #[test]
    fn changing_owners_needs_the_permission_to_delete() {
        let plain = || json!([owner("Deployment", false)]);
        assert_eq!(run(&[], plain(), None), Ok(()));
        assert_eq!(run(&[], plain(), Some(plain())), Ok(()));
        assert_eq!(run(&["delete configmaps/ n/a"], plain(), Some(json!([]))), Ok(()));
        assert_eq!(
            run(&[], plain(), Some(json!([]))).unwrap_err(),
            "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"
        );
    }

    #[test]
    fn blocking_the_deletion_of_an_owner_needs_a_permission_for_it() {
        let blocking = |kind| json!([owner(kind, true)]);
        let refused = "configmaps \"a\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
             set finalizers on: , <nil>";
        assert_eq!(run(&[], blocking("Deployment"), None).unwrap_err(), refused);
        assert_eq!(run(&["update deployments/finalizers n/o"], blocking("Deployment"), None), Ok(()));
        assert_eq!(run(&["update */finalizers /*"], blocking("Other"), None), Ok(()));
        assert_eq!(
            run(&[], blocking("Other"), None).unwrap_err(),
            "configmaps \"a\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion apps/v1 Kind Other: no matches for kind \"Other\" in version \"apps/v1\""
        );
        let before = Some(json!([owner("Deployment", false)]));
        let delete = &["delete configmaps/ n/a"];
        assert_eq!(run(delete, blocking("Deployment"), before).unwrap_err(), refused);
        let mut renamed = owner("Deployment", true);
        renamed["name"] = json!("p");
        assert_eq!(run(delete, json!([renamed]), Some(blocking("Deployment"))), Ok(()));
    }
}
