//! Cached reads.

use pintle_machinery::{GroupResource, Value};
use std::sync::Arc;

/// Reads other objects from a cache, which may be a little behind the store. It is asked on nearly every write, so it
/// must answer from memory, and should keep the decoded form of the few objects it is asked for again and again.
pub trait Lister: Send + Sync {
    /// An object; `None` when the cache has none or the resource is not cached, which the caller then reads as it is
    /// stored.
    fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// All objects of a namespace ("" for all); `None` when the resource is not cached.
    fn list(&self, resource: &GroupResource, namespace: &str) -> Option<Vec<Arc<Value>>>;
}

/// No cache: everything is read as it is stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLister;

impl Lister for NoLister {
    fn get(&self, _: &GroupResource, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn list(&self, _: &GroupResource, _: &str) -> Option<Vec<Arc<Value>>> {
        None
    }
}
