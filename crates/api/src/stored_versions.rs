//! Lists former storage versions of resources, in which stored objects may still be encoded: those that the reference
//! still decodes. <https://kubernetes.io/docs/reference/using-api/deprecation-guide/> states when each was removed.
//!
//! Versions that are still served have conversions in their declarations. Of the others most differ only in their name;
//! the exceptions are in [`SPECIAL`].

use crate::events::conversion::to_core;
use pintle_machinery::{GroupVersionKind, Map, Value, ValueExt, json};
use pintle_registry::{Resource, StoredVersion};
use pintle_schema::Schema;

type Convert = fn(Value) -> Value;

/// All versions that any group has had.
const VERSIONS: [&str; 11] = [
    "v1", "v1beta1", "v1beta2", "v1beta3", "v1alpha1", "v1alpha2", "v1alpha3", "v2", "v2beta1", "v2beta2",
    "v2beta3",
];

/// Kinds that moved between groups: group, kind, the former group.
const MOVED: [(&str, &str, &str); 6] = [
    ("", "Event", "events.k8s.io"),
    ("apps", "DaemonSet", "extensions"),
    ("apps", "Deployment", "extensions"),
    ("apps", "ReplicaSet", "extensions"),
    ("networking.k8s.io", "Ingress", "extensions"),
    ("networking.k8s.io", "NetworkPolicy", "extensions"),
];

/// Versions that differ in more than their name: group, version ("" is any), kind, conversion.
const SPECIAL: [(&str, &str, &str, Convert); 16] = [
    ("apps", "", "DaemonSet", daemon_set),
    ("apps", "", "Deployment", deployment),
    ("apps", "", "StatefulSet", stateful_set),
    ("discovery.k8s.io", "v1beta1", "EndpointSlice", endpoint_slice),
    ("events.k8s.io", "", "Event", to_core),
    ("extensions", "v1beta1", "DaemonSet", daemon_set),
    ("extensions", "v1beta1", "Deployment", deployment),
    ("extensions", "v1beta1", "Ingress", ingress),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", "PriorityLevelConfiguration", renamed_concurrency_shares),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", "PriorityLevelConfiguration", renamed_concurrency_shares),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", "PriorityLevelConfiguration", zero_concurrency_shares),
    ("networking.k8s.io", "v1beta1", "Ingress", ingress),
    ("node.k8s.io", "v1alpha1", "RuntimeClass", runtime_class),
    ("policy", "v1beta1", "PodDisruptionBudget", pod_disruption_budget),
    ("rbac.authorization.k8s.io", "v1alpha1", "ClusterRoleBinding", role_binding),
    ("rbac.authorization.k8s.io", "v1alpha1", "RoleBinding", role_binding),
];

/// The other versions in which objects of a resource may be stored. `declared` are the resources in all versions.
pub(crate) fn of(resource: &Resource, declared: &[Resource]) -> Vec<StoredVersion> {
    let own = &resource.group_version_kind();
    let groups = MOVED.iter().filter(|(group, kind, _)| *group == own.group && *kind == own.kind);
    let groups = std::iter::once(own.group.as_str()).chain(groups.map(|(_, _, other)| *other));
    let kinds = groups
        .flat_map(|group| VERSIONS.map(|version| GroupVersionKind::new(group, version, own.kind.clone())));
    kinds.filter(|kind| kind != own).filter_map(|kind| stored_version(kind, declared)).collect()
}

fn stored_version(kind: GroupVersionKind, declared: &[Resource]) -> Option<StoredVersion> {
    let schema = Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind)?;
    let type_name = format!("{}.{}", schema.package(), schema.name());
    let served = declared.iter().filter(|other| other.group_version_kind() == kind);
    let served = served.filter_map(|other| other.conversion).next();
    let special = SPECIAL.iter().find(|(group, version, name, _)| {
        *group == kind.group && (version.is_empty() || *version == kind.version) && *name == kind.kind
    });
    let to_storage = match (served, special) {
        (Some(conversion), _) => conversion.to_storage,
        (None, Some((_, _, _, convert))) => *convert,
        (None, None) => unchanged,
    };
    Some(StoredVersion { kind, type_name, to_storage })
}

fn unchanged(object: Value) -> Value {
    object
}

/// Keeps a value without a field in the stored version in an annotation.
fn annotate(object: &mut Value, name: &str, value: Option<i64>) {
    let Some(value) = value else { return };
    let mut annotations = object.map_at("metadata.annotations").clone();
    annotations.insert(name, value.to_string().into());
    object.set("metadata.annotations", Value::Object(annotations));
}

fn daemon_set(mut object: Value) -> Value {
    let generation = object.remove_at("spec.templateGeneration").and_then(|value| value.as_i64());
    annotate(&mut object, "deprecated.daemonset.template.generation", Some(generation.unwrap_or_default()));
    object
}

fn deployment(mut object: Value) -> Value {
    let rollback = object.remove_at("spec.rollbackTo");
    let revision = rollback.map(|rollback| rollback.i64_at("revision").unwrap_or_default());
    annotate(&mut object, "deprecated.deployment.rollback.to", revision);
    object
}

fn stateful_set(mut object: Value) -> Value {
    for template in object.items_at_mut("spec.volumeClaimTemplates") {
        template.set("kind", "PersistentVolumeClaim");
        template.set("apiVersion", "v1");
    }
    object
}

fn endpoint_slice(mut object: Value) -> Value {
    for endpoint in object.items_at_mut("endpoints") {
        let Some(Value::Object(mut topology)) = endpoint.remove_at("topology") else { continue };
        if let Some(zone) = topology.remove("topology.kubernetes.io/zone") {
            endpoint.set("zone", zone);
        }
        let host = topology.get("kubernetes.io/hostname").and_then(Value::as_str);
        if host.is_some_and(|host| host == endpoint.str_at("nodeName")) {
            topology.remove("kubernetes.io/hostname");
        }
        if !topology.is_empty() {
            endpoint.set("deprecatedTopology", Value::Object(topology));
        }
    }
    object
}

fn ingress(mut object: Value) -> Value {
    if let Some(mut backend) = object.remove_at("spec.backend") {
        ingress_backend(&mut backend);
        object.set("spec.defaultBackend", backend);
    }
    for rule in object.items_at_mut("spec.rules") {
        for path in rule.items_at_mut("http.paths") {
            path.at_mut("backend").into_iter().for_each(ingress_backend);
        }
    }
    object
}

fn ingress_backend(backend: &mut Value) {
    let name = backend.remove_at("serviceName");
    let port = backend.remove_at("servicePort");
    if name.is_none() && port.is_none() {
        return;
    }
    let mut service = Map::new();
    service.extend(name.map(|name| ("name".to_owned(), name)));
    let port = match port {
        Some(Value::String(name)) if !name.is_empty() => json!({"name": name}),
        Some(Value::Number(number)) if number.as_i64() != Some(0) => json!({"number": number}),
        _ => json!({}),
    };
    service.insert("port", port);
    backend.set("service", Value::Object(service));
}

/// The default of shares in versions where the field was not a pointer.
const DEFAULT_SHARES: i64 = 30;

fn renamed_concurrency_shares(mut object: Value) -> Value {
    if let Some(limited) = object.at_mut("spec.limited") {
        let shares = limited.remove_at("assuredConcurrencyShares");
        limited.set("nominalConcurrencyShares", shares.unwrap_or_else(|| DEFAULT_SHARES.into()));
    }
    object
}

/// The annotation stated that zero was intended.
fn zero_concurrency_shares(mut object: Value) -> Value {
    let mut annotations = object.map_at("metadata.annotations").clone();
    let zero = annotations.remove("flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares").is_some();
    match annotations.is_empty() {
        true => drop(object.remove_at("metadata.annotations")),
        false => object.set("metadata.annotations", Value::Object(annotations)),
    }
    if let Some(limited) = object.at_mut("spec.limited")
        && limited.i64_at("nominalConcurrencyShares").unwrap_or_default() == 0
    {
        limited.set("nominalConcurrencyShares", if zero { 0 } else { DEFAULT_SHARES });
    }
    object
}

fn runtime_class(mut object: Value) -> Value {
    let Some(Value::Object(spec)) = object.remove_at("spec") else { return object };
    for (name, value) in spec {
        match name.as_str() {
            "runtimeHandler" => object.set("handler", value),
            name => object.set(name, value),
        }
    }
    object
}

/// A label that encoded the meaning of an empty selector, which selects all pods in the stored version and none in the
/// older.
const EMPTY_SELECTOR: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

fn pod_disruption_budget(mut object: Value) -> Value {
    let expression = |operator: &str| json!({"key": EMPTY_SELECTOR, "operator": operator});
    let Some(selector) = object.at_mut("spec.selector") else { return object };
    if selector.as_object().is_some_and(Map::is_empty) {
        *selector = json!({"matchExpressions": [expression("Exists")]});
    } else if *selector == json!({"matchExpressions": [expression("DoesNotExist")]}) {
        *selector = json!({});
    } else {
        if let Some(labels) = selector.at_mut("matchLabels").and_then(Value::as_object_mut) {
            labels.remove(EMPTY_SELECTOR);
        }
        if let Some(expressions) = selector.at_mut("matchExpressions").and_then(Value::as_array_mut) {
            expressions.retain(|expression| expression.str_at("key") != EMPTY_SELECTOR);
        }
    }
    object
}

fn role_binding(mut object: Value) -> Value {
    const GROUP: &str = "rbac.authorization.k8s.io";
    for subject in object.items_at_mut("subjects") {
        let api_version = subject.remove_at("apiVersion");
        let group = match subject.str_at("kind") {
            "ServiceAccount" => "",
            "User" | "Group" => GROUP,
            _ => api_version
                .as_ref()
                .and_then(Value::as_str)
                .and_then(|version| version.split_once('/'))
                .map_or("", |(group, _)| group),
        };
        let group = group.to_owned();
        if group == GROUP && subject.str_at("kind") == "User" && subject.str_at("name") == "*" {
            subject.set("kind", "Group");
            subject.set("name", "system:authenticated");
        }
        match group.is_empty() {
            true => drop(subject.remove_at("apiGroup")),
            false => subject.set("apiGroup", group),
        }
    }
    object
}

#[cfg(test)]
mod tests;
