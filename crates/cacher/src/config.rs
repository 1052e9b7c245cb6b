//! What a cacher is told.

use crate::{LogBudget, ObjectDecoder};
use std::{sync::Arc, time::Duration};

/// Where reads are answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadSource {
    /// The cache, as fresh as asked.
    #[default]
    Cache,
    /// The cache as well, but never an older state than the store's newest: nobody can tell it from the store.
    NewestOfCache,
    /// The store. The cache still follows the resource, for watches and for [`crate::Cacher::current`].
    Storage,
}

/// How to cache one resource.
#[derive(Clone)]
pub struct CacherConfig {
    /// The resource, as `pods` or `deployments.apps`, for the log.
    pub resource: Arc<str>,
    /// The prefix of the resource's storage keys, ending in `/`. A namespaced object's key is the prefix, the
    /// namespace, `/` and the name; a cluster-scoped object's the prefix and the name.
    pub prefix: Arc<str>,
    /// Turns stored bytes into objects.
    pub decoder: Arc<dyn ObjectDecoder>,
    /// Where reads are answered from.
    pub read_source: ReadSource,
    /// The selectable fields by whose value watchers are indexed, besides `metadata.name` and `metadata.namespace`,
    /// which always are.
    pub triggers: Vec<TriggerField>,
    /// For how long events are kept at least so that watches can resume, as far as
    /// [`CacherConfig::log_capacity_max`] allows.
    pub history: Duration,
    /// So many events are kept however old they are.
    pub log_capacity_min: usize,
    /// Never more events than these are kept.
    pub log_capacity_max: usize,
    /// Never more bytes of replaced and deleted objects are kept for the events.
    pub log_bytes_max: usize,
    /// What the logs of all resources share.
    pub log_budget: LogBudget,
    /// Whether a watch from before the event log is served from the store's history, so that clients need not list
    /// again after a restart. To be switched off for a resource that begins to exist with its cacher, as a custom
    /// resource does: a revision from before that has to be [`crate::CacherError::Expired`].
    pub resume_from_storage: bool,
    /// How many items wait for a watcher before it is told to catch up from the event log.
    pub queue_capacity: usize,
    /// How often a watcher that wants bookmarks gets one.
    pub bookmark_period: Duration,
    /// How long a read waits for the cache to reach its revision.
    pub freshness_timeout: Duration,
    /// How many objects are read from storage at a time.
    pub page_size: usize,
}

impl CacherConfig {
    /// The defaults: those of kube-apiserver where it has the same.
    pub fn new(
        resource: impl Into<Arc<str>>,
        prefix: impl Into<Arc<str>>,
        decoder: Arc<dyn ObjectDecoder>,
    ) -> CacherConfig {
        CacherConfig {
            resource: resource.into(),
            prefix: prefix.into(),
            decoder,
            read_source: ReadSource::default(),
            triggers: Vec::new(),
            history: Duration::from_secs(75),
            log_capacity_min: 100,
            log_capacity_max: 100 * 1024,
            log_bytes_max: 16 << 20,
            log_budget: LogBudget::default(),
            resume_from_storage: true,
            queue_capacity: 1000,
            bookmark_period: Duration::from_secs(60),
            freshness_timeout: Duration::from_secs(3),
            page_size: 500,
        }
    }
}

/// A selectable field by whose value watchers are indexed, such as `spec.nodeName` of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerField {
    /// The field's name in selectors.
    pub name: Arc<str>,
    /// Its place in [`crate::DecodedObject::fields`].
    pub index: usize,
}
