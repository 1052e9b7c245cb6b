//! The server's other objects, for code that needs them while it serves a request.

use crate::BoxFuture;
use pintle_machinery::{GroupResource, Status, UserInfo, Value};

pub use pintle_machinery::options::{DeleteOptions, PropagationPolicy};

/// How a write through [`Registry`] is done.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Nothing is kept.
    pub dry_run: bool,
    /// Who writes; `None` is the server itself.
    pub user: Option<UserInfo>,
    /// The manager for `metadata.managedFields`.
    pub field_manager: String,
    /// The subresource written through, or "": through a part the part's rules hold, through a create (`binding`) only
    /// those of metadata.
    pub subresource: &'static str,
}

/// Reads and writes other objects of this server, through the same stores and strategies as requests (without
/// authorization). Objects are trees in their storage version. Reads are consistent.
pub trait Registry: Send + Sync {
    /// One object; a 404 `Status` when there is none.
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// As [`Registry::get`], but as the cache has it, which may be a little behind: no question to the store.
    fn get_cached<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        self.get(resource, namespace, name)
    }

    /// All objects of a namespace ("" for all namespaces or a cluster-scoped resource).
    fn list<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>>;

    /// Creates an object.
    fn create<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        object: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Changes an object: `change` gets the stored object and returns what it should be; it is called again when
    /// another writer came first. Returning an error ends the update with it. An unchanged object is not written.
    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Deletes an object; the answer is the object as it was last (still there when it ends gracefully).
    fn delete<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        options: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}
