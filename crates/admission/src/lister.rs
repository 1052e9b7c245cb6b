//! Defines [`Lister`], the cached reads of plugins.

use crate::Undecoded;
use pintle_machinery::{GroupResource, Value, selectors::LabelSelector};
use pintle_registry::BoxFuture;
use std::{any::Any, fmt, sync::Arc};

/// A state of a resource in a cache.
pub struct ListState(Box<dyn Any + Send + Sync>);

impl ListState {
    /// A state, as the cache keeps it.
    pub fn new(state: impl Any + Send + Sync) -> ListState {
        ListState(Box::new(state))
    }

    /// The state, for the cache that it comes from.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for ListState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListState").finish_non_exhaustive()
    }
}

/// Reads other objects from a cache, which may be slightly behind the store. It is called on nearly every write, so it
/// must answer from memory, and should keep the decoded form of the few objects that are read often.
pub trait Lister: Send + Sync {
    /// Returns an object; `None` when the cache does not have it or the resource is not cached. The caller then reads
    /// the object from the store.
    fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// Returns the labels of an object that have one of these keys, without decoding the object; `None` as for
    /// [`Lister::get`].
    fn labels(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        keys: &[&str],
    ) -> Option<Vec<(String, String)>>;

    /// Lists the objects of a namespace ("" for all), those that cannot be read any more in their last state; `None` when
    /// the resource is not cached, or an object of the namespace could never be read.
    fn list(&self, resource: &GroupResource, namespace: &str) -> Option<Vec<Arc<Value>>>;

    /// Finds the objects of a namespace ("" for all) whose labels match, without decoding any; `None` as for
    /// [`Lister::list`].
    fn select<'a>(
        &'a self,
        resource: &GroupResource,
        namespace: &str,
        selector: &LabelSelector,
    ) -> Option<Vec<Undecoded<'a>>>;

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

    /// Waits until the cache has every write to a resource that was acknowledged before the call, or cannot have it in time.
    /// The wait may cost a call to the store: it is for rare requests that judge all objects that are there. The caller
    /// limits the time.
    fn catch_up<'a>(&'a self, resource: &'a GroupResource) -> BoxFuture<'a, ()>;

    /// The present state of a resource, to be compared with a later one; `None` when the resource is not cached.
    fn state(&self, _resource: &GroupResource) -> Option<ListState> {
        None
    }

    /// Whether the objects of a resource are still those of a state. It is found out in constant time, and may be denied
    /// although nothing has changed.
    fn is_in_state(&self, _resource: &GroupResource, _state: &ListState) -> bool {
        false
    }
}
