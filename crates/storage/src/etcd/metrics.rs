//! The observer of an etcd engine's requests.

use std::time::Duration;

/// Observes every request to etcd, for `etcd_requests_total` and related metrics.
///
/// The crate has no metrics library and knows no resources: implementations derive the resource from the key.
pub trait EtcdObserver: Send + Sync + 'static {
    /// Called when a request has ended. `operation` is kube-apiserver's name: `get`, `list`, `listWithCount`,
    /// `create`, `update`, `delete`. `key` is the key or, for a list and a count, the prefix.
    fn request(&self, operation: &'static str, key: &str, took: Duration, failed: bool);

    /// Called when a lease gets no more keys, with the number of its keys.
    fn lease(&self, objects: u64);
}
