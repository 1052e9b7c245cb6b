//! What an engine tells of its requests.

use std::time::Duration;

/// Is told of every request to etcd, for `etcd_requests_total` and its siblings.
///
/// The crate knows no metrics library, and no resource: who implements this finds the resource by the key.
pub trait EtcdObserver: Send + Sync + 'static {
    /// A request is over. `operation` is in kube-apiserver's words: `get`, `list`, `create`, `update`, `delete`. `key`
    /// is the key or, for a list, the prefix.
    fn request(&self, operation: &'static str, key: &str, took: Duration, failed: bool);

    /// A lease gets no more keys; it has so many.
    fn lease(&self, objects: u64);
}
