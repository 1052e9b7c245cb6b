//! Finds the resources of kinds, in all servers of the chain.

use pintle_admission::{KindMapping, RestMapper};
use pintle_apiserver::registry::{Stores, VersionedResource};
use pintle_machinery::GroupVersionKind;
use pintle_registry::Scope;
use std::sync::{Arc, OnceLock};

/// The resources of all servers. Admission plugins are created before the servers; until these are set, no kind has a
/// resource.
#[derive(Default)]
pub(crate) struct ChainRestMapper {
    stores: OnceLock<Vec<Arc<Stores>>>,
}

impl ChainRestMapper {
    /// Sets the stores of the servers, once.
    pub(crate) fn set_stores(&self, stores: Vec<Arc<Stores>>) {
        if self.stores.set(stores).is_err() {
            tracing::error!("the servers have their stores already");
        }
    }
}

impl RestMapper for ChainRestMapper {
    fn mappings(&self, kind: &GroupVersionKind) -> Vec<KindMapping> {
        let mut mappings = Vec::new();
        let mut add = |resource: &VersionedResource| {
            let resource = &resource.resource;
            if resource.group_version_kind() == *kind {
                let is_namespaced = resource.scope == Scope::Namespaced;
                mappings.push(KindMapping { resource: resource.resource.clone(), is_namespaced });
            }
        };
        for stores in self.stores.get().into_iter().flatten() {
            stores.resources().iter().for_each(|resource| add(resource));
            for custom in stores.custom_of_group(&kind.group) {
                custom.versions().iter().for_each(|resource| add(resource));
            }
        }
        mappings
    }
}
