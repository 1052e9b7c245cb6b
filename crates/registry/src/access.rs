//! Defines [`Registry`], through which code that serves a request reads and writes the server's other objects.

use crate::BoxFuture;
use pintle_machinery::{GroupResource, GroupVersionKind, GroupVersionResource, Status, UserInfo, Value};
use std::ops::ControlFlow;

pub use pintle_machinery::options::{DeleteOptions, Preconditions, PropagationPolicy};

/// The options of a write through [`Registry`].
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Runs all checks and stores nothing.
    pub dry_run: bool,
    /// The user that the write is done for; `None` is the server itself.
    pub user: Option<UserInfo>,
    /// The manager for `metadata.managedFields`.
    pub field_manager: String,
    /// The subresource that is written, or "". An update applies the rules of that subresource; a create (`binding`)
    /// applies only the rules for metadata.
    pub subresource: &'static str,
    /// The preconditions of an update.
    pub preconditions: Preconditions,
}

/// A kind that this server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedKind {
    /// The resource of its objects.
    pub resource: GroupVersionResource,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

/// Reads and writes other objects of this server, through the same stores and strategies as requests (without
/// authorization). Objects are trees in their storage version. Reads are consistent.
pub trait Registry: Send + Sync {
    /// Returns one object; a 404 `Status` when there is none.
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// As [`Registry::get`], from the watch cache without a call to the store: the object may be slightly stale.
    fn get_cached<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        self.get(resource, namespace, name)
    }

    /// Passes the objects of a namespace ("" for all namespaces or a cluster-scoped resource) to `visit`, until it breaks.
    /// Objects are decoded one after the other, so that only those that `visit` keeps take memory.
    fn visit<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        visit: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Lists the first `most` objects of a namespace that match, as [`Registry::visit`].
    fn list_matching<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        most: usize,
        matches: &'a (dyn Fn(&Value) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(async move {
            let mut found = Vec::new();
            let mut keep = |object| {
                if matches(&object) {
                    found.push(object);
                }
                if found.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            self.visit(resource, namespace, &mut keep).await?;
            Ok(found)
        })
    }

    /// Lists all objects of a namespace, as [`Registry::visit`]: of resources with few, small objects.
    fn list<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        self.list_matching(resource, namespace, usize::MAX, &|_| true)
    }

    /// The resource of a kind, built in or custom; `None` when no stored resource of this server has the kind.
    fn served(&self, _kind: &GroupVersionKind) -> Option<ServedKind> {
        None
    }

    /// Converts an object of this server, as [`Registry::get`] returns it, to another version of its kind.
    ///
    /// # Errors
    /// 404 when the kind is not served, and the error of a conversion that fails.
    fn convert<'a>(
        &'a self,
        object: &'a Value,
        _kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(Ok(object.clone())))
    }

    /// Creates an object.
    fn create<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        object: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Updates an object: `change` receives the stored object and returns its new state. `change` is called again when
    /// another write came in between; its error ends the update. An unchanged object is not written.
    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Applies a configuration to an object by server-side apply, and takes conflicting fields from other managers. The
    /// object must exist.
    fn apply<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        configuration: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Deletes an object and returns its last state, which still exists when the deletion is graceful.
    fn delete<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        options: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}
