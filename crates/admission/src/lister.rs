//! Defines [`Lister`], the cached reads of plugins.

use pintle_machinery::{GroupResource, Value};
use std::sync::Arc;

/// Reads other objects from a cache, which may be slightly behind the store. It is called on nearly every write, so it
/// must answer from memory, and should keep the decoded form of the few objects that are read often.
pub trait Lister: Send + Sync {
    /// Returns an object; `None` when the cache does not have it or the resource is not cached. The caller then reads
    /// the object from the store.
    fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// Lists the objects of a namespace ("" for all); `None` when the resource is not cached.
    fn list(&self, resource: &GroupResource, namespace: &str) -> Option<Vec<Arc<Value>>>;

    /// Lists the next objects of a namespace by name, at most `limit`, after the one named `after` ("" to begin); `None`
    /// when the resource is not cached. For lists that are too long to decode at once: the objects are not kept. Fewer
    /// objects than `limit` are the last ones.
    fn page(
        &self,
        resource: &GroupResource,
        namespace: &str,
        after: &str,
        limit: usize,
    ) -> Option<Vec<Value>>;

    /// Counts the objects of a namespace after the one named `after`, without decoding them; `None` when the resource is
    /// not cached.
    fn count(&self, resource: &GroupResource, namespace: &str, after: &str) -> Option<usize>;
}
