//! Reports the number and size of objects, for the work estimates of flow control.

use super::Stores;
use pintle_flowcontrol::{ResourceStats, ResourceStatsSource};
use pintle_machinery::GroupResource;
use std::sync::Arc;

/// Statistics of the objects of all servers of a chain, from their watch caches.
pub struct StoredResourceStats(pub Vec<Arc<Stores>>);

/// The number of objects that the average size is estimated from.
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
            bytes += object.size() as u64;
        }
        let average_bytes = u64::checked_div(bytes, sampled).unwrap_or_default();
        Some(ResourceStats { count: snapshot.len() as u64, average_bytes })
    }
}
