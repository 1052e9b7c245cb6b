//! Exports the counters of the watch caches.
//!
//! A resource's watch cache is replaced when its definition changes, and its counters begin anew. The exported series goes
//! on: it grows by what each cache counted.

use pintle_cacher::CacherMetrics;
use pintle_machinery::GroupResource;
use prometheus::IntCounterVec;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// One counter of the watch caches and the field it is read from.
pub(super) struct CacherCounter {
    pub(super) exported: IntCounterVec,
    pub(super) read: fn(&CacherMetrics) -> &AtomicU64,
    /// The values of the labels after `group` and `resource`.
    pub(super) more: &'static [&'static str],
    /// Whether a series begins with the first count, and not with the cache.
    pub(super) is_sparse: bool,
}

impl CacherCounter {
    fn labels<'a>(&self, resource: &'a GroupResource) -> Vec<&'a str> {
        let own = [resource.group.as_str(), resource.resource.as_str()];
        own.into_iter().chain(self.more.iter().copied()).collect()
    }
}

/// The counters, and what was exported of each watch cache.
pub(super) struct CacherCounters {
    counters: Vec<CacherCounter>,
    seen: HashMap<GroupResource, Seen>,
}

/// The counts of one watch cache that were exported.
struct Seen {
    metrics: Arc<CacherMetrics>,
    counts: Vec<u64>,
}

impl CacherCounters {
    /// Nothing is exported yet.
    pub(super) fn new(counters: Vec<CacherCounter>) -> CacherCounters {
        CacherCounters { counters, seen: HashMap::new() }
    }

    /// Exports what the watch cache of a resource counted since the last time.
    pub(super) fn export(&mut self, resource: &GroupResource, metrics: &Arc<CacherMetrics>) {
        let begun = || Seen { metrics: metrics.clone(), counts: vec![0; self.counters.len()] };
        let seen = match self.seen.get_mut(resource) {
            Some(seen) => seen,
            None => self.seen.entry(resource.clone()).or_insert_with(begun),
        };
        if !Arc::ptr_eq(&seen.metrics, metrics) {
            // The last counts of the cache that was replaced.
            seen.export(&self.counters, resource);
            *seen = begun();
        }
        seen.export(&self.counters, resource);
    }

    /// Removes the series of the resources that are no longer served, and returns these.
    pub(super) fn retain(&mut self, is_served: impl Fn(&GroupResource) -> bool) -> Vec<GroupResource> {
        let gone: Vec<GroupResource> =
            self.seen.extract_if(|resource, _| !is_served(resource)).map(|(resource, _)| resource).collect();
        for resource in &gone {
            for counter in &self.counters {
                // A sparse series may be absent.
                let _ = counter.exported.remove_label_values(&counter.labels(resource));
            }
        }
        gone
    }
}

impl Seen {
    fn export(&mut self, counters: &[CacherCounter], resource: &GroupResource) {
        for (counter, count) in counters.iter().zip(&mut self.counts) {
            let now = (counter.read)(&self.metrics).load(Ordering::Relaxed);
            if now > 0 || !counter.is_sparse {
                counter
                    .exported
                    .with_label_values(&counter.labels(resource))
                    .inc_by(now.saturating_sub(*count));
            }
            *count = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::Opts;

    fn counter(name: &str, is_sparse: bool) -> CacherCounter {
        CacherCounter {
            exported: IntCounterVec::new(Opts::new(name, "Help."), &["group", "resource", "kind"]).unwrap(),
            read: |metrics| &metrics.lists,
            more: &["a"],
            is_sparse,
        }
    }

    #[test]
    fn a_series_goes_on_when_the_cache_is_replaced_and_ends_with_the_resource() {
        let own = counter("lists", false);
        let sparse = counter("sparse", true);
        let series = |of: &IntCounterVec| {
            use prometheus::core::Collector;
            let families = of.collect();
            families
                .iter()
                .flat_map(|family| family.get_metric())
                .map(|m| m.get_counter().get_value())
                .collect()
        };
        let (exported, few) = (own.exported.clone(), sparse.exported.clone());
        let check = |lists: &[f64], sparse: &[f64]| {
            let found: [Vec<f64>; 2] = [series(&exported), series(&few)];
            assert_eq!(found, [lists.to_vec(), sparse.to_vec()]);
        };
        let mut counters = CacherCounters::new(vec![own, sparse]);
        let things = GroupResource::new("example.com", "things");
        let first = Arc::new(CacherMetrics::default());
        counters.export(&things, &first);
        check(&[0.0], &[]);
        first.lists.store(5, Ordering::Relaxed);
        for _ in 0..2 {
            counters.export(&things, &first);
            check(&[5.0], &[5.0]);
        }
        // Counted after the last scrape, before the cache was replaced.
        first.lists.store(7, Ordering::Relaxed);
        let second = Arc::new(CacherMetrics::default());
        second.lists.store(2, Ordering::Relaxed);
        counters.export(&things, &second);
        check(&[9.0], &[9.0]);
        assert_eq!(counters.retain(|_| true), []);
        check(&[9.0], &[9.0]);
        assert_eq!(counters.retain(|_| false), std::slice::from_ref(&things));
        check(&[], &[]);
        // A resource of the same name is another one.
        counters.export(&things, &second);
        check(&[2.0], &[2.0]);
    }
}
