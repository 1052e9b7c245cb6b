//! Publishes the versions in which this server stores, decodes and serves each of its resources, as objects of the
//! storage version API
//! (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2339-storageversion-api-for-ha-api-servers>).
//!
//! Each server has an entry, under its identity, in the object of each resource; the garbage collector of the controller
//! manager removes the entries of servers without an identity lease. The objects tell a migration of stored objects
//! whether all servers store a resource in the same version.

use crate::identity_lease::identity;
use crate::objects::write_options;
use futures_util::future::join_all;
use jiff::Timestamp;
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, json, meta::format_time};
use pintle_registry::{Registry, ResourceInfo, StorageVersionManager, WriteOptions};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// The number of attempts to update an object that is created or deleted concurrently.
const ATTEMPTS: usize = 3;
/// The interval between updates, once all storage versions are published. Clients may change or delete the objects.
const INTERVAL: Duration = Duration::from_secs(600);
/// The interval between updates while some storage versions are not published: writes are refused meanwhile.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

const CONDITION: &str = "AllEncodingVersionsEqual";

/// Publishes the storage versions of the resources of a manager.
pub struct StorageVersions {
    /// The resources; it learns which of them are published.
    pub manager: Arc<StorageVersionManager>,
    /// The host name, from which the server's identity is derived.
    pub hostname: String,
}

impl StorageVersions {
    /// The resource of the objects.
    pub fn resource() -> GroupResource {
        GroupResource::new("internal.apiserver.k8s.io", "storageversions")
    }

    /// Publishes the storage versions of all resources once, and records which of them are published. Unchanged objects
    /// are read and not written.
    pub async fn update(&self, registry: &dyn Registry) {
        let id = identity(&self.hostname);
        let now = Timestamp::now();
        let updates = self
            .manager
            .resource_infos()
            .iter()
            .map(|info| async { publish(registry, info, &id, now).await });
        let results = join_all(updates).await;
        for (info, result) in self.manager.resource_infos().iter().zip(&results) {
            if let Err(error) = result {
                tracing::error!(resource = %info.resource, %error, "failed to update a storage version");
            }
        }
        self.manager.record(results.into_iter().map(|result| result.map_err(|status| status.message)));
    }

    /// Updates the storage versions from time to time; never returns.
    pub async fn run(&self, registry: &dyn Registry) {
        loop {
            sleep(if self.manager.is_completed() { INTERVAL } else { RETRY_INTERVAL }).await;
            self.update(registry).await;
        }
    }
}

/// Creates the object of a resource if it is missing, and updates the entry of the server `id`.
async fn publish(
    registry: &dyn Registry,
    info: &ResourceInfo,
    id: &str,
    now: Timestamp,
) -> Result<(), Status> {
    let (resource, name) = (StorageVersions::resource(), info.object_name());
    for _ in 0..ATTEMPTS {
        let change = |mut object: Value| {
            set_entry(&mut object, info, id);
            set_common_encoding_version(&mut object, now);
            Ok(object)
        };
        let options = WriteOptions { subresource: "status", ..write_options() };
        match registry.update(&resource, "", &name, Box::new(change), options).await {
            Err(status)
                if status.reason == StatusReason::NotFound && status != Status::no_such_resource() => {}
            result => return result.map(drop),
        }
        let object = json!({
            "apiVersion": "internal.apiserver.k8s.io/v1alpha1",
            "kind": "StorageVersion",
            "metadata": {"name": name},
            "spec": {},
        });
        match registry.create(&resource, "", object, write_options()).await {
            // Another server created it first.
            Err(status) if status.reason == StatusReason::AlreadyExists => {}
            result => drop(result?),
        }
    }
    Err(Status::conflict(&resource, &name, "the object was deleted whenever it was to be changed"))
}

/// Replaces or adds the entry of the server `id`.
fn set_entry(object: &mut Value, info: &ResourceInfo, id: &str) {
    let entry = json!({
        "apiServerID": id,
        "encodingVersion": info.encoding_version,
        "decodableVersions": info.decodable_versions,
        "servedVersions": info.served_versions,
    });
    let mut entries = object.items_at("status.storageVersions").to_vec();
    match entries.iter_mut().find(|old| old.str_at("apiServerID") == id) {
        Some(old) => *old = entry,
        None => entries.push(entry),
    }
    object.set("status.storageVersions", Value::Array(entries));
}

/// Sets the encoding version that all servers agree on, and the condition that there is one.
fn set_common_encoding_version(object: &mut Value, now: Timestamp) {
    let old = object.remove_at("status.commonEncodingVersion");
    let mut versions =
        object.items_at("status.storageVersions").iter().map(|entry| entry.str_at("encodingVersion"));
    let common = versions.next().filter(|first| versions.all(|version| version == *first));
    let common = common.map(Value::from);
    let (status, reason, message) = match common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let has_another_version = old.is_some() && common.is_some() && old != common;
    if let Some(common) = common {
        object.set("status.commonEncodingVersion", common);
    }
    let generation = object.i64_at("metadata.generation").filter(|generation| *generation != 0);
    let mut conditions = object.items_at("status.conditions").to_vec();
    let at = conditions.iter().position(|condition| condition.str_at("type") == CONDITION);
    let mut condition =
        at.and_then(|at| conditions.get(at)).cloned().unwrap_or_else(|| json!({"type": CONDITION}));
    if condition.str_at("status") != status || has_another_version {
        condition.set("lastTransitionTime", format_time(now));
    }
    condition.set("status", status);
    condition.set("reason", reason);
    condition.set("message", message);
    match generation {
        Some(generation) => condition.set("observedGeneration", generation),
        None => drop(condition.remove_at("observedGeneration")),
    }
    match at.and_then(|at| conditions.get_mut(at)) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    object.set("status.conditions", Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::{MemoryRegistry, now};

    fn pods(encoding: &str) -> ResourceInfo {
        ResourceInfo {
            resource: GroupResource::new("", "pods"),
            equivalents: vec![GroupResource::new("", "pods")],
            encoding_version: encoding.to_owned(),
            decodable_versions: vec!["v2".to_owned(), "v1".to_owned()],
            served_versions: vec!["v1".to_owned()],
        }
    }

    fn publish_at(registry: &MemoryRegistry, id: &str, encoding: &str, seconds: i64) -> Value {
        let time = Timestamp::from_second(seconds).unwrap();
        now(publish(registry, &pods(encoding), id, time)).unwrap();
        registry.stored(&StorageVersions::resource(), "", "core.pods").unwrap()["status"].clone()
    }

    fn entry(id: &str, encoding: &str) -> Value {
        json!({
            "apiServerID": id, "encodingVersion": encoding, "decodableVersions": ["v2", "v1"], "servedVersions": ["v1"],
        })
    }

    fn condition(status: &str, reason: &str, message: &str, seconds: i64) -> Value {
        json!([{
            "type": CONDITION, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": format_time(Timestamp::from_second(seconds).unwrap()),
        }])
    }

    #[test]
    fn servers_agree_on_a_version_or_on_none() {
        let registry = MemoryRegistry::default();
        let set = |at: i64| condition("True", "CommonEncodingVersionSet", "Common encoding version set", at);
        let unset =
            |at: i64| condition("False", "CommonEncodingVersionUnset", "Common encoding version unset", at);
        let status = publish_at(&registry, "a", "v1", 10);
        let entries = json!([entry("a", "v1")]);
        assert_eq!(
            status,
            json!({"storageVersions": entries, "commonEncodingVersion": "v1", "conditions": set(10)})
        );
        let revision = registry.revision();
        publish_at(&registry, "a", "v1", 20);
        assert_eq!(registry.revision(), revision, "nothing has changed");

        let status = publish_at(&registry, "b", "v2", 30);
        let entries = json!([entry("a", "v1"), entry("b", "v2")]);
        assert_eq!(status, json!({"storageVersions": entries, "conditions": unset(30)}));
        let status = publish_at(&registry, "a", "v2", 40);
        let entries = json!([entry("a", "v2"), entry("b", "v2")]);
        assert_eq!(
            status,
            json!({"storageVersions": entries, "commonEncodingVersion": "v2", "conditions": set(40)})
        );
    }

    #[test]
    fn another_common_version_is_a_transition() {
        let registry = MemoryRegistry::default();
        publish_at(&registry, "a", "v1", 10);
        let status = publish_at(&registry, "a", "v2", 20);
        assert_eq!(status.str_at("commonEncodingVersion"), "v2");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:20Z");
    }

    #[test]
    fn the_manager_learns_what_is_published() {
        let registry = MemoryRegistry::default();
        let manager = Arc::new(StorageVersionManager::new(vec![pods("v1")]));
        let publisher = StorageVersions { manager: manager.clone(), hostname: "host".to_owned() };
        assert!(manager.pending_update(&GroupResource::new("", "pods")).is_some());
        now(publisher.update(&registry));
        assert!(manager.is_completed());
        let stored = registry.stored(&StorageVersions::resource(), "", "core.pods").unwrap();
        assert_eq!(stored["status"]["storageVersions"][0]["apiServerID"], identity("host"));
    }
}
