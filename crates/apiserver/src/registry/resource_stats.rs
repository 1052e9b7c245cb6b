//! How many objects there are and how large, for those who guess what a request will cost.

use super::Stores;
use pintle_flowcontrol::{ResourceStats, ResourceStatsSource};
use pintle_machinery::GroupResource;
use std::sync::Arc;

/// What the caches know of the objects of all servers of a chain.
pub struct StoredResourceStats(pub Vec<Arc<Stores>>);

/// So many objects are looked at to guess the size of all.
const SAMPLE: usize = 16;

impl ResourceStatsSource for StoredResourceStats {
    fn stats(&self, group: &str, resource: &str) -> Option<ResourceStats> {
        let resource = GroupResource::new(group, resource);
        let store = self.0.iter().find_map(|stores| stores.store(&resource).ok())?;
        let Some(snapshot) = store.cacher().current() else {
            return Some(ResourceStats { count: 0, average_bytes: 0 });
        };
        let prefix = store.key_prefix("");
        let (mut sampled, mut bytes) = (0, 0);
        for object in snapshot.range(&prefix, None).take(SAMPLE) {
            sampled += 1;
            bytes += object.json().len() as u64;
        }
        let average_bytes = u64::checked_div(bytes, sampled).unwrap_or_default();
        Some(ResourceStats { count: snapshot.len() as u64, average_bytes })
    }
}
