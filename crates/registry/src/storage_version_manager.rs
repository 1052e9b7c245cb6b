//! The state of the publication of a server's storage versions.

use crate::ResourceInfo;
use parking_lot::RwLock;
use pintle_machinery::GroupResource;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

/// Has the resources whose storage versions a server publishes, and knows which of them are published. Until the version
/// in which this server stores a resource is published, it must not write objects of the resource: a migration of stored
/// objects relies on the published versions.
/// A resource that was published once stays published.
pub struct StorageVersionManager {
    infos: Vec<ResourceInfo>,
    /// The index in `infos` of each resource with its equivalents.
    by_resource: HashMap<GroupResource, usize>,
    /// The state of each of `infos`.
    updates: RwLock<Vec<UpdateStatus>>,
    completed: AtomicBool,
}

#[derive(Clone, Default)]
struct UpdateStatus {
    is_done: bool,
    last_error: Option<String>,
}

/// The reason for which a resource cannot be written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpdate {
    /// The error of the last attempt to publish; `None` before the first one has ended.
    pub last_error: Option<String>,
}

impl StorageVersionManager {
    /// A manager of these resources, none of which is published.
    pub fn new(infos: Vec<ResourceInfo>) -> StorageVersionManager {
        let mut by_resource = HashMap::new();
        for (index, info) in infos.iter().enumerate() {
            by_resource.extend(info.equivalents.iter().map(|resource| (resource.clone(), index)));
        }
        let updates = RwLock::new(vec![UpdateStatus::default(); infos.len()]);
        StorageVersionManager { infos, by_resource, updates, completed: AtomicBool::new(false) }
    }

    /// The resources to publish.
    pub fn resource_infos(&self) -> &[ResourceInfo] {
        &self.infos
    }

    /// Records the result of an attempt to publish each of [`StorageVersionManager::resource_infos`], in their order.
    pub fn record(&self, results: impl IntoIterator<Item = Result<(), String>>) {
        let mut updates = self.updates.write();
        for (update, result) in updates.iter_mut().zip(results) {
            update.last_error = result.err();
            update.is_done |= update.last_error.is_none();
        }
        if updates.iter().all(|update| update.is_done) {
            self.completed.store(true, Ordering::Release);
        }
    }

    /// Whether all resources are published.
    pub fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Whether a resource waits for its publication. `None` for published resources and for those that this manager does
    /// not have: resources that are not stored, and custom resources.
    pub fn pending_update(&self, resource: &GroupResource) -> Option<PendingUpdate> {
        let index = *self.by_resource.get(resource)?;
        let updates = self.updates.read();
        let update = updates.get(index).filter(|update| !update.is_done)?;
        Some(PendingUpdate { last_error: update.last_error.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(resource: &str, equivalents: &[(&str, &str)]) -> ResourceInfo {
        let equivalents: Vec<GroupResource> =
            equivalents.iter().map(|(group, resource)| GroupResource::new(*group, *resource)).collect();
        ResourceInfo {
            resource: GroupResource::new("", resource),
            equivalents,
            encoding_version: "v1".to_owned(),
            decodable_versions: vec!["v1".to_owned()],
            served_versions: vec!["v1".to_owned()],
        }
    }

    #[test]
    fn a_resource_is_pending_until_it_was_published_once() {
        let manager = StorageVersionManager::new(vec![
            info("pods", &[("", "pods")]),
            info("events", &[("", "events"), ("events.k8s.io", "events")]),
        ]);
        let pending = |group: &str, resource: &str| {
            manager.pending_update(&GroupResource::new(group, resource)).map(|pending| pending.last_error)
        };
        assert_eq!(pending("", "pods"), Some(None));
        assert_eq!(pending("", "bindings"), None, "nothing of it is stored");
        let failure = || Err("not yet".to_owned());
        manager.record([Ok(()), failure()]);
        assert_eq!(pending("", "pods"), None);
        assert_eq!(pending("events.k8s.io", "events"), Some(Some("not yet".to_owned())));
        assert!(!manager.is_completed());
        manager.record([failure(), Ok(())]);
        assert_eq!(pending("", "pods"), None, "other servers know it already");
        assert_eq!(pending("", "events"), None);
        assert!(manager.is_completed());
    }
}
