//! The parts that all roles and bindings of the policy have in common.

use pintle_machinery::{GroupResource, Value, ValueExt, json};
use pintle_rbac::GROUP_NAME;

/// The annotation that excludes an object from reconciliation with the value "false".
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Creates an object with the common labels and annotations.
pub(super) fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {AUTO_UPDATE: "true"},
        },
    });
    if !namespace.is_empty() {
        object.set("metadata.namespace", namespace);
    }
    object
}

/// The resource of an object's kind.
pub(super) fn resource_of(object: &Value) -> GroupResource {
    GroupResource::new(GROUP_NAME, format!("{}s", object.str_at("kind").to_lowercase()))
}
