//! Custom resources: resources that are added and removed at run time.

use super::{DeclarationError, StorageFactory, Store, StoreConfig, TypeSchema, VersionedResource};
use imbl::OrdMap;
use pintle_machinery::{GroupResource, GroupVersionResource};
use pintle_registry::Resource;
use pintle_supervisor::Supervisor;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A served custom resource: all of its versions, and its store.
pub struct CustomResource {
    versions: Vec<Arc<VersionedResource>>,
    all_versions: Vec<Arc<VersionedResource>>,
    store: Arc<Store>,
    terminating: Arc<AtomicBool>,
}

impl CustomResource {
    /// Starts the store of a custom resource. `versions` are its declarations; that of the storage version, which
    /// [`Resource::storage`] names, is among them. `is_served` selects the versions with paths. The strategies check
    /// `terminating` before a create.
    ///
    /// # Errors
    /// When the storage version is not among them, or there is no converter between versions.
    pub fn start(
        versions: Vec<Resource>,
        is_served: impl Fn(&Resource) -> bool,
        terminating: Arc<AtomicBool>,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
    ) -> Result<CustomResource, DeclarationError> {
        let versions: Vec<Arc<Resource>> = versions.into_iter().map(Arc::new).collect();
        let is_stored = |resource: &Resource| resource.group_version_kind() == resource.storage.kind;
        let stored =
            versions.iter().find(|resource| is_stored(resource)).ok_or(DeclarationError::NoStorageVersion)?;
        let config =
            StoreConfig { resource: stored.clone(), versions: versions.clone(), storage: storage.clone() };
        let store = Store::start(config, supervisor)?;
        let mut all_versions = Vec::with_capacity(versions.len());
        for (at, resource) in versions.into_iter().enumerate() {
            let schema = TypeSchema::of(&resource).ok_or_else(|| DeclarationError::no_schema(&resource))?;
            let (slot, own) = match is_stored(&resource) {
                true => (0, store.clone()),
                false => {
                    let own = store.in_version(resource.clone()).ok_or(DeclarationError::NoConverter)?;
                    (at as u32 + 1, own)
                }
            };
            all_versions.push(Arc::new(VersionedResource {
                resource,
                schema,
                slot,
                store: Some(own),
                series: Default::default(),
            }));
        }
        let versions = all_versions.iter().filter(|version| is_served(&version.resource)).cloned().collect();
        Ok(CustomResource { versions, all_versions, store, terminating })
    }

    /// The served versions.
    pub fn versions(&self) -> &[Arc<VersionedResource>] {
        &self.versions
    }

    /// All versions in which objects, and managed fields in them, may be stored.
    pub fn all_versions(&self) -> &[Arc<VersionedResource>] {
        &self.all_versions
    }

    /// The group.
    pub fn group(&self) -> &str {
        &self.store.group_resource().group
    }

    /// Whether the `CustomResourceDefinition` is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Acquire)
    }

    /// Sets whether the definition is being deleted; returns whether that is a change.
    pub(super) fn set_terminating(&self, is_terminating: bool) -> bool {
        self.terminating.swap(is_terminating, Ordering::AcqRel) != is_terminating
    }

    /// The store, in the storage version.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
}

/// The custom resources of a server: an immutable map sorted by group, in which an insert or a removal is cheap at any
/// size.
#[derive(Clone, Default)]
pub(super) struct CustomResources(OrdMap<GroupResource, Arc<CustomResource>>);

impl CustomResources {
    pub(super) fn get(&self, resource: &GroupResource) -> Option<&Arc<CustomResource>> {
        self.0.get(resource)
    }

    pub(super) fn find(&self, resource: &GroupVersionResource) -> Option<Arc<VersionedResource>> {
        let custom = self.0.get(&resource.group_resource())?;
        custom.versions.iter().find(|own| own.resource.resource.version == resource.version).cloned()
    }

    pub(super) fn set(
        &mut self,
        resource: GroupResource,
        custom: Arc<CustomResource>,
    ) -> Option<Arc<CustomResource>> {
        self.0.insert(resource, custom)
    }

    pub(super) fn remove(&mut self, resource: &GroupResource) -> Option<Arc<CustomResource>> {
        self.0.remove(resource)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<CustomResource>> {
        self.0.values()
    }

    /// The custom resources of one group, by name.
    pub(super) fn of_group(&self, group: &str) -> impl Iterator<Item = &Arc<CustomResource>> {
        let first = GroupResource::new(group, "");
        let in_group =
            move |(resource, _): &(&GroupResource, &Arc<CustomResource>)| resource.group == first.group;
        self.0.range(GroupResource::new(group, "")..).take_while(in_group).map(|(_, custom)| custom)
    }
}
