//! Creates and reconciles the flow schemas and priority levels that every server has
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#maintenance-of-the-mandatory-and-suggested-configuration-objects>).

use super::{flow_schemas, priority_levels};
use crate::controller::{Controller, OBJECTS_INTERVAL};
use pintle_flowcontrol::{
    EXEMPT,
    bootstrap::{self, AUTO_UPDATE, Requirement},
};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{DeleteOptions, Registry, WriteOptions};
use std::time::Duration;

/// The field manager of these writes.
const FIELD_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// Maintains the mandatory and suggested flow schemas and priority levels.
pub struct FlowControlObjects;

impl Controller for FlowControlObjects {
    const NAME: &'static str = "flow control";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry).await
    }
}

/// Creates missing objects, updates outdated ones, and removes objects of earlier versions that this one does not have.
/// Objects that a user has taken over are left alone.
async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    // Levels first: a schema without its level would be reported as dangling.
    tokio::try_join!(
        ensure(registry, priority_levels(), Requirement::Suggested, bootstrap::priority_levels),
        ensure(registry, priority_levels(), Requirement::Mandatory, bootstrap::priority_levels),
    )?;
    tokio::try_join!(
        ensure(registry, flow_schemas(), Requirement::Suggested, bootstrap::flow_schemas),
        ensure(registry, flow_schemas(), Requirement::Mandatory, bootstrap::flow_schemas),
    )?;
    remove_unwanted(registry, flow_schemas(), bootstrap::flow_schemas).await?;
    remove_unwanted(registry, priority_levels(), bootstrap::priority_levels).await
}

async fn ensure(
    registry: &dyn Registry,
    resource: GroupResource,
    requirement: Requirement,
    objects: fn(Requirement) -> Vec<Value>,
) -> Result<(), Status> {
    let objects = objects(requirement);
    // Concurrent, so that the writes share a group commit.
    let writes = objects.iter().map(|object| ensure_one(registry, &resource, requirement, object));
    futures_util::future::try_join_all(writes).await.map(drop)
}

async fn ensure_one(
    registry: &dyn Registry,
    resource: &GroupResource,
    requirement: Requirement,
    wanted: &Value,
) -> Result<(), Status> {
    let options = || WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() };
    match registry.get(resource, "", wanted.name()).await {
        Err(status) if status.reason == StatusReason::NotFound => {}
        Err(status) => return Err(status),
        Ok(current) => {
            if revised(&current, wanted, requirement).is_none() {
                return Ok(());
            }
            let revise = |current: Value| Ok(revised(&current, wanted, requirement).unwrap_or(current));
            return match registry.update(resource, "", wanted.name(), Box::new(revise), options()).await {
                // The object was deleted concurrently; the next reconciliation creates it.
                Err(status) if status.reason == StatusReason::NotFound => Ok(()),
                result => result.map(drop),
            };
        }
    }
    match registry.create(resource, "", wanted.clone(), options()).await {
        // Another server created it first.
        Err(status) if status.reason == StatusReason::AlreadyExists => Ok(()),
        result => result.map(drop),
    }
}

/// The object with the required changes; `None` when none are needed.
fn revised(current: &Value, wanted: &Value, requirement: Requirement) -> Option<Value> {
    let updates_spec = requirement == Requirement::Mandatory || is_ours(current);
    let mut revised = current.clone();
    if annotation(current) != Some(updates_spec) {
        let told = if updates_spec { "true" } else { "false" };
        revised.object_at_mut("metadata.annotations").insert(AUTO_UPDATE, told.into());
    }
    let spec = wanted.at("spec").cloned().unwrap_or_default();
    if updates_spec && !is_same_spec(current, &spec) {
        revised.set("spec", spec);
    }
    (revised != *current).then_some(revised)
}

/// Whether the server keeps the spec of a suggested object up to date: when the annotation requests it, or when there
/// is no annotation and the spec was never changed.
fn is_ours(current: &Value) -> bool {
    annotation(current).unwrap_or(current.i64_at("metadata.generation") == Some(1))
}

/// The value of the annotation, parsed as Go parses a boolean; `None` when absent or malformed.
fn annotation(object: &Value) -> Option<bool> {
    match object.annotation(AUTO_UPDATE)? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The concurrency settings of the exempt level are the user's choice.
fn is_same_spec(current: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.clone();
    if current.name() == EXEMPT && wanted.at("exempt").is_some() {
        let Some(exempt) = current.at("spec.exempt") else { return false };
        wanted.set("exempt", exempt.clone());
    }
    current.at("spec") == Some(&wanted)
}

async fn remove_unwanted(
    registry: &dyn Registry,
    resource: GroupResource,
    objects: fn(Requirement) -> Vec<Value>,
) -> Result<(), Status> {
    let wanted = [objects(Requirement::Mandatory), objects(Requirement::Suggested)].concat();
    for object in registry.list(&resource, "").await? {
        let is_wanted = wanted.iter().any(|wanted| wanted.name() == object.name());
        if is_wanted || annotation(&object) != Some(true) {
            continue;
        }
        match registry.delete(&resource, "", object.name(), DeleteOptions::default()).await {
            Err(status) if status.reason == StatusReason::NotFound => {}
            result => drop(result?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, now};

    fn stored(registry: &MemoryRegistry, resource: &GroupResource, name: &str) -> Option<Value> {
        registry.stored(resource, "", name)
    }

    fn change(registry: &MemoryRegistry, resource: &GroupResource, name: &str, path: &str, value: Value) {
        let change = |mut object: Value| {
            object.set(path, value.clone());
            Ok(object)
        };
        now(registry.update(resource, "", name, Box::new(change), WriteOptions::default())).unwrap();
    }

    #[test]
    fn a_fresh_server_gets_its_objects_once() {
        let registry = MemoryRegistry::default();
        now(reconcile(&registry)).unwrap();
        assert_eq!(now(registry.list(&priority_levels(), "")).unwrap().len(), 8);
        assert_eq!(now(registry.list(&flow_schemas(), "")).unwrap().len(), 11);
        let revision = registry.revision();
        now(reconcile(&registry)).unwrap();
        assert_eq!(registry.revision(), revision);
    }

    #[test]
    fn mandatory_objects_are_put_right_but_for_the_exempt_s_shares() {
        let registry = MemoryRegistry::default();
        now(reconcile(&registry)).unwrap();
        change(&registry, &flow_schemas(), "catch-all", "spec.matchingPrecedence", json!(7));
        change(
            &registry,
            &flow_schemas(),
            "catch-all",
            "metadata.annotations",
            json!({AUTO_UPDATE: "false"}),
        );
        change(&registry, &priority_levels(), EXEMPT, "spec.exempt.nominalConcurrencyShares", json!(9));
        now(reconcile(&registry)).unwrap();
        let schema = stored(&registry, &flow_schemas(), "catch-all").unwrap();
        assert_eq!(schema["spec"]["matchingPrecedence"], 10_000);
        assert_eq!(schema.annotation(AUTO_UPDATE), Some("true"));
        let level = stored(&registry, &priority_levels(), EXEMPT).unwrap();
        assert_eq!(level["spec"]["exempt"]["nominalConcurrencyShares"], 9);
        change(&registry, &priority_levels(), EXEMPT, "spec", json!({"type": "Limited"}));
        now(reconcile(&registry)).unwrap();
        let level = stored(&registry, &priority_levels(), EXEMPT).unwrap();
        assert_eq!(level["spec"]["type"], "Exempt");
    }

    #[test]
    fn suggested_objects_are_whose_the_annotation_says() {
        let check = |annotation: Value, generation: i64, is_put_right: bool, told: &str| {
            let registry = MemoryRegistry::default();
            now(reconcile(&registry)).unwrap();
            let levels = priority_levels();
            change(&registry, &levels, "system", "spec.limited.lendablePercent", json!(1));
            change(&registry, &levels, "system", "metadata.annotations", annotation.clone());
            change(&registry, &levels, "system", "metadata.generation", json!(generation));
            now(reconcile(&registry)).unwrap();
            let level = stored(&registry, &levels, "system").unwrap();
            let percent = if is_put_right { 33 } else { 1 };
            assert_eq!(level["spec"]["limited"]["lendablePercent"], percent, "{annotation} {generation}");
            assert_eq!(level.annotation(AUTO_UPDATE), Some(told));
        };
        check(json!({AUTO_UPDATE: "true"}), 2, true, "true");
        check(json!({AUTO_UPDATE: "T"}), 2, true, "T");
        check(json!({AUTO_UPDATE: "false"}), 1, false, "false");
        check(json!({AUTO_UPDATE: "perhaps"}), 1, true, "true");
        check(json!({AUTO_UPDATE: "perhaps"}), 2, false, "false");
        check(json!({}), 1, true, "true");
        check(json!({}), 2, false, "false");
    }

    #[test]
    fn what_earlier_versions_made_goes() {
        let registry = MemoryRegistry::default();
        let add = |name: &str, annotations: Value| {
            let object = json!({"metadata": {"name": name, "annotations": annotations}});
            now(registry.create(&flow_schemas(), "", object, WriteOptions::default())).unwrap();
        };
        add("old", json!({AUTO_UPDATE: "true"}));
        add("kept", json!({AUTO_UPDATE: "false"}));
        add("theirs", json!({}));
        now(reconcile(&registry)).unwrap();
        let has = |name: &str| stored(&registry, &flow_schemas(), name).is_some();
        assert!(!has("old") && has("kept") && has("theirs"));
        // A deleted object is created again.
        now(registry.delete(&flow_schemas(), "", "probes", DeleteOptions::default())).unwrap();
        now(reconcile(&registry)).unwrap();
        assert!(has("probes"));
    }
}
