//! Counts the open watches that a write has to be sent to.

use crate::{RequestAttributes, request::is_read_only};
use parking_lot::Mutex;
use pintle_machinery::FieldSelector;
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

/// Counts open watches by resource, namespace and name.
///
/// The counts are keyed by a hash of these, so that a write is looked up without copying its strings. A collision
/// adds two counts, which only makes an estimate less exact.
#[derive(Debug, Default)]
pub struct WatchTracker {
    hasher: RandomState,
    counts: Mutex<HashMap<u64, usize>>,
}

/// A registered watch; it is counted until this is dropped.
#[derive(Debug)]
pub struct RegisteredWatch {
    tracker: Arc<WatchTracker>,
    key: u64,
}

impl Drop for RegisteredWatch {
    fn drop(&mut self) {
        let mut counts = self.tracker.counts.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

/// The field that watches of pods are indexed by: watches for other values cost an event nothing.
const INDEXED: (&str, &str) = ("pods", "spec.nodeName");

impl WatchTracker {
    /// Counts a watch; `None` when it adds almost no cost to writes.
    pub fn register(self: &Arc<Self>, request: &dyn RequestAttributes) -> Option<RegisteredWatch> {
        if request.verb() != "watch" {
            return None;
        }
        if request.resource() == INDEXED.0
            && let Some(selector) = request.query("fieldSelector")
            && let Ok(selector) = FieldSelector::parse(selector)
            && selector.requires_exact_match(INDEXED.1).is_some_and(|value| !value.is_empty())
        {
            return None;
        }
        let key = self.key(request, request.namespace(), request.name());
        *self.counts.lock().entry(key).or_default() += 1;
        Some(RegisteredWatch { tracker: self.clone(), key })
    }

    /// The number of watches that may match a write: watches of all objects, of its namespace, and of its object.
    pub fn interested(&self, request: &dyn RequestAttributes) -> usize {
        if is_read_only(request.verb()) || request.verb() == "proxy" {
            return 0;
        }
        let (namespace, name) = (request.namespace(), request.name());
        let everywhere = self.key(request, "", "");
        let in_namespace = (!namespace.is_empty()).then(|| self.key(request, namespace, ""));
        let of_object = (!name.is_empty()).then(|| self.key(request, namespace, name));
        let counts = self.counts.lock();
        let keys = [Some(everywhere), in_namespace, of_object];
        keys.into_iter().flatten().filter_map(|key| counts.get(&key)).sum()
    }

    fn key(&self, request: &dyn RequestAttributes, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((request.api_group(), request.resource(), namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestRequest;

    #[test]
    fn writes_are_told_to_watches_of_all_of_the_namespace_and_of_the_object() {
        let tracker = Arc::new(WatchTracker::default());
        let watch = |resource: &str, namespace: &str, name: &str| {
            tracker.register(&TestRequest::resource("watch", "", resource).within(namespace).named(name))
        };
        let watches = [
            watch("secrets", "", ""),
            watch("secrets", "a", ""),
            watch("secrets", "a", ""),
            watch("secrets", "a", "x"),
            watch("secrets", "b", ""),
            watch("nodes", "", ""),
        ];
        let check = |verb: &str, namespace: &str, name: &str, expected: usize| {
            let write = TestRequest::resource(verb, "", "secrets").within(namespace).named(name);
            assert_eq!(tracker.interested(&write), expected, "{verb} {namespace}/{name}");
        };
        check("create", "a", "", 3);
        check("update", "a", "x", 4);
        check("update", "a", "y", 3);
        check("delete", "c", "x", 1);
        check("get", "a", "x", 0);
        drop(watches);
        check("update", "a", "x", 0);
        assert!(tracker.counts.lock().is_empty());
    }

    #[test]
    fn watches_of_one_node_s_pods_cost_little() {
        let tracker = Arc::new(WatchTracker::default());
        let watch = |selector: &str| {
            let request = TestRequest::resource("watch", "", "pods").asking(&[("fieldSelector", selector)]);
            tracker.register(&request)
        };
        assert!(watch("spec.nodeName=a").is_none());
        assert!(watch("spec.nodeName=").is_some());
        assert!(watch("status.phase=Running").is_some());
        assert!(tracker.register(&TestRequest::resource("list", "", "pods")).is_none());
    }
}
