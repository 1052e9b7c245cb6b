//! The configuration of a cacher.

use crate::{ByteBudget, ObjectDecoder};
use std::{sync::Arc, time::Duration};

/// The source that reads are answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadSource {
    /// The cache, as fresh as the request requires.
    #[default]
    Cache,
    /// The cache, but never with a state older than the store's latest. Clients cannot distinguish it from the store.
    NewestOfCache,
    /// The store. The cache still follows the resource, for watches and for [`crate::Cacher::current`].
    Storage,
}

/// The configuration of the cache of one resource.
#[derive(Clone)]
pub struct CacherConfig {
    /// The resource's name in log messages and metrics, such as `pods` or `deployments.apps`.
    pub resource: Arc<str>,
    /// The prefix of the resource's storage keys, ending in `/`. A namespaced object's key is the prefix, the
    /// namespace, `/` and the name; a cluster-scoped object's the prefix and the name.
    pub prefix: Arc<str>,
    /// Decodes stored bytes into objects.
    pub decoder: Arc<dyn ObjectDecoder>,
    /// The source that reads are answered from.
    pub read_source: ReadSource,
    /// The selectable fields that watchers are indexed by. `metadata.name` and `metadata.namespace` are always
    /// indexed.
    pub triggers: Vec<TriggerField>,
    /// The least time for which events are kept so that watches can resume, within
    /// [`CacherConfig::log_capacity_max`].
    pub history: Duration,
    /// The number of newest events that are kept however old they are.
    pub log_capacity_min: usize,
    /// The largest number of events that are kept.
    pub log_capacity_max: usize,
    /// The largest number of bytes of replaced and deleted objects that the events may keep.
    pub log_bytes_max: usize,
    /// The byte budget that the event logs and the retained states of all resources share.
    pub log_budget: ByteBudget,
    /// The byte budget that the JSON of the open objects of all resources shares. Objects beyond it are packed.
    pub open_budget: ByteBudget,
    /// The largest number of bytes of replaced and deleted objects that states retained for continue tokens may keep.
    pub retained_bytes_max: usize,
    /// The longest time for which a state is retained after its last continue token. Later pages are read from the
    /// store, for as long as the store has the state.
    pub retention: Duration,
    /// Whether a watch from before the event log is served from the store's history, so that clients need not list
    /// again after a restart. Switch it off for a resource whose first cacher starts with the resource, such as a
    /// custom resource: an earlier revision has to return [`crate::CacherError::Expired`].
    pub resume_from_storage: bool,
    /// The number of items in a watcher's queue above which the watcher reads the event log instead.
    pub queue_capacity: usize,
    /// The byte budget that the queues of the watchers of all resources share. A watcher whose queue is beyond it reads
    /// the event log instead.
    pub queue_budget: ByteBudget,
    /// The byte budget that the states share that slow readers of all resources hold. Beyond it, readers lose them.
    pub held_budget: ByteBudget,
    /// The interval between the bookmarks of a watch that requests them.
    pub bookmark_period: Duration,
    /// The longest time that a read waits for the cache to reach its revision.
    pub freshness_timeout: Duration,
    /// The number of objects in one page of a list from the store.
    pub page_size: usize,
}

impl CacherConfig {
    /// The defaults: kube-apiserver's values where kube-apiserver has the setting.
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
            log_budget: ByteBudget::of_logs(),
            open_budget: ByteBudget::of_open_objects(),
            retained_bytes_max: 32 << 20,
            // The default of `--etcd-compaction-interval`.
            retention: Duration::from_secs(300),
            resume_from_storage: true,
            queue_capacity: 1000,
            queue_budget: ByteBudget::of_queues(),
            held_budget: ByteBudget::of_held_states(),
            bookmark_period: Duration::from_secs(60),
            freshness_timeout: Duration::from_secs(3),
            page_size: 500,
        }
    }
}

/// A selectable field that watchers are indexed by, such as `spec.nodeName` of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerField {
    /// The field's name in selectors.
    pub name: Arc<str>,
    /// Its index in [`crate::Selectable::fields`].
    pub index: usize,
}
