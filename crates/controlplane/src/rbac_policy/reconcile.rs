//! Reconciles stored roles and bindings with the desired ones.

use super::{
    binding,
    object::{AUTO_UPDATE, resource_of},
};
use crate::objects::{changes, create_if_missing, create_or_change};
use pintle_machinery::{
    GroupResource, Status, StatusReason, Value, ValueExt, json, meta::ObjectMeta,
    validation::semantically_equal,
};
use pintle_rbac::{GROUP_NAME, PolicyRule, covers};
use pintle_registry::{DeleteOptions, Preconditions, Registry};

/// The number of attempts to replace a binding that changes concurrently.
const ATTEMPTS: usize = 4;

/// Creates a role, or adds the parts that it lacks.
pub(super) async fn role(registry: &dyn Registry, wanted: Value) -> Result<(), Status> {
    let (resource, namespace) = (resource_of(&wanted), wanted.namespace().to_owned());
    let object = wanted.clone();
    create_or_change(registry, &resource, &namespace, object, |role| complete_role(role, &wanted)).await
}

/// Creates a binding, or adds the subjects that it lacks. A binding to another role is replaced, since its role is
/// immutable.
pub(super) async fn binding(registry: &dyn Registry, wanted: Value) -> Result<(), Status> {
    let (resource, namespace) = (resource_of(&wanted), wanted.namespace().to_owned());
    for _ in 0..ATTEMPTS {
        let existing = match registry.get(&resource, &namespace, wanted.name()).await {
            Ok(existing) if is_kept(&existing) => return Ok(()),
            Ok(existing) => existing,
            Err(status) if status.reason == StatusReason::NotFound => Value::Null,
            Err(status) => return Err(status),
        };
        let role = |binding: &Value| binding.at("roleRef").cloned().unwrap_or_default();
        if existing.is_null() || semantically_equal(&role(&existing), &role(&wanted)) {
            let complete = |binding: &mut Value| complete_binding(binding, &wanted);
            if !existing.is_null() && !changes(complete, &existing) {
                return Ok(());
            }
            let object = wanted.clone();
            return create_or_change(registry, &resource, &namespace, object, complete).await;
        }
        let options =
            DeleteOptions { preconditions: Preconditions::uid(existing.uid()), ..DeleteOptions::default() };
        match registry.delete(&resource, &namespace, wanted.name(), options).await {
            Ok(_) => {}
            // The binding was deleted or replaced concurrently.
            Err(status) if matches!(status.reason, StatusReason::NotFound | StatusReason::Conflict) => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::conflict(&resource, wanted.name(), "the binding was changed whenever it was made anew"))
}

fn is_kept(object: &Value) -> bool {
    object.map_at("metadata.annotations").get(AUTO_UPDATE).is_some_and(|value| value == "false")
}

fn complete_role(role: &mut Value, wanted: &Value) {
    if is_kept(role) {
        return;
    }
    complete_metadata(role, wanted);
    complete_rules(role, wanted);
    if wanted.at("aggregationRule").is_none() {
        role.remove_at("aggregationRule");
    }
    for selector in wanted.items_at("aggregationRule.clusterRoleSelectors") {
        let own = role.items_at("aggregationRule.clusterRoleSelectors");
        if !own.iter().any(|own| semantically_equal(own, selector)) {
            push(role, "aggregationRule.clusterRoleSelectors", selector.clone());
        }
    }
}

fn complete_rules(role: &mut Value, wanted: &Value) {
    if role.at("rules") == wanted.at("rules") {
        return;
    }
    let own = PolicyRule::of_role(role);
    let missing = covers::missing(&own.iter().collect::<Vec<_>>(), &PolicyRule::of_role(wanted));
    // The desired rules are the server's own, and their number is bounded.
    for rule in missing.unwrap_or_default() {
        push(role, "rules", json!(rule));
    }
}

fn complete_binding(binding: &mut Value, wanted: &Value) {
    if is_kept(binding) {
        return;
    }
    complete_metadata(binding, wanted);
    for subject in wanted.items_at("subjects") {
        if !binding.items_at("subjects").iter().any(|own| semantically_equal(own, subject)) {
            push(binding, "subjects", subject.clone());
        }
    }
}

/// Adds missing labels and annotations; existing values are kept.
fn complete_metadata(object: &mut Value, wanted: &Value) {
    for path in ["metadata.labels", "metadata.annotations"] {
        let mut own = object.map_at(path).clone();
        for (name, value) in wanted.map_at(path) {
            own.entry(name.clone()).or_insert_with(|| value.clone());
        }
        object.set(path, own);
    }
}

fn push(object: &mut Value, path: &str, item: Value) {
    match object.at_mut(path).and_then(Value::as_array_mut) {
        Some(list) => list.push(item),
        None => object.set(path, json!([item])),
    }
}

/// Migrates objects of old versions: the rules of roles that are now aggregated, and the subjects of a binding that was
/// split into two.
pub(super) async fn carry_over(registry: &dyn Registry) -> Result<(), Status> {
    let cluster = |resource: &str| GroupResource::new(GROUP_NAME, resource);
    let (roles, bindings) = (cluster("clusterroles"), cluster("clusterrolebindings"));
    for (old, new) in [
        ("admin", "system:aggregate-to-admin"),
        ("edit", "system:aggregate-to-edit"),
        ("view", "system:aggregate-to-view"),
    ] {
        if find(registry, &roles, new).await?.is_some() {
            continue;
        }
        let Some(mut role) = find(registry, &roles, old).await? else { continue };
        if role.at("aggregationRule").is_some() {
            // The aggregated roles already exist.
            break;
        }
        role.set("metadata.name", new);
        forget_identity(&mut role);
        create_if_missing(registry, &roles, "", role).await?;
    }
    let (old, new) = ("system:discovery", "system:public-info-viewer");
    let Some(discovery) = find(registry, &bindings, old).await? else { return Ok(()) };
    if find(registry, &bindings, new).await?.is_some() {
        return Ok(());
    }
    let mut split = binding::without_subjects("", new, new);
    for path in ["metadata.labels", "metadata.annotations", "subjects"] {
        match discovery.at(path) {
            Some(value) => split.set(path, value.clone()),
            None => drop(split.remove_at(path)),
        }
    }
    create_if_missing(registry, &bindings, "", split).await?;
    Ok(())
}

async fn find(
    registry: &dyn Registry,
    resource: &GroupResource,
    name: &str,
) -> Result<Option<Value>, Status> {
    match registry.get(resource, "", name).await {
        Ok(object) => Ok(Some(object)),
        Err(status) if status.reason == StatusReason::NotFound && status != Status::no_such_resource() => {
            Ok(None)
        }
        Err(status) => Err(status),
    }
}

/// Removes the metadata that a copy of an object must not have.
fn forget_identity(object: &mut Value) {
    for member in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        object.remove_at(&format!("metadata.{member}"));
    }
}
