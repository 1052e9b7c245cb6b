//! Indexes watchers by the key, namespace or field value that they require of an object.
//!
//! Each watcher is in one bucket, the narrowest that its scope and trigger allow. An event is looked up in the few
//! buckets that its object's key, name, namespace and trigger values select, before and after the change; so its cost
//! does not grow with the number of watchers that cannot match it.

use crate::{
    CachedObject, TriggerField, bucket::Bucket, event::Change, placed::Placed, watch_target::WatchTarget,
};
use std::{collections::HashMap, sync::Arc};

#[derive(Default)]
pub(crate) struct WatcherIndex {
    buckets: HashMap<Bucket, Placed>,
    /// The indexes of the trigger fields among the selectable fields.
    fields: Vec<usize>,
}

impl WatcherIndex {
    pub(crate) fn new(triggers: &[TriggerField]) -> WatcherIndex {
        WatcherIndex {
            buckets: HashMap::new(),
            fields: triggers.iter().map(|trigger| trigger.index).collect(),
        }
    }

    pub(crate) fn insert(&mut self, target: Arc<WatchTarget>) {
        let bucket = self.buckets.entry(target.bucket.clone());
        bucket.or_insert_with(|| Placed::new(|target| &target.in_index)).push(target);
    }

    /// Removes a watcher, at a cost that does not grow with their number.
    pub(crate) fn remove(&mut self, target: &Arc<WatchTarget>) {
        let Some(bucket) = self.buckets.get_mut(&target.bucket) else { return };
        bucket.remove(target);
        if bucket.is_empty() {
            self.buckets.remove(&target.bucket);
        }
    }

    /// Removes all watchers and returns them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<WatchTarget>> {
        std::mem::take(&mut self.buckets).into_values().flat_map(Placed::into_vec)
    }

    /// Calls `visit` once for each watcher that the change may match.
    pub(crate) fn for_each_candidate(&self, change: &Change, mut visit: impl FnMut(&Arc<WatchTarget>)) {
        if self.buckets.is_empty() {
            return;
        }
        let mut look_into = |bucket: Bucket| {
            for target in self.buckets.get(&bucket).into_iter().flat_map(Placed::iter) {
                visit(target);
            }
        };
        let (current, previous) = (change.current.as_deref(), change.previous.as_deref());
        let Some(object) = current.or(previous) else { return };
        look_into(Bucket::All);
        if !object.namespace().is_empty() {
            look_into(Bucket::Namespace(object.namespace_arc().clone()));
        }
        look_into(Bucket::Name(object.name_arc().clone()));
        look_into(Bucket::Object(object.key().clone()));
        for field in &self.fields {
            let value = |object: Option<&CachedObject>| {
                object.and_then(|object| object.fields().get(*field)).cloned()
            };
            let (current, previous) = (value(current), value(previous));
            if previous != current
                && let Some(value) = previous
            {
                look_into(Bucket::Field(*field, value));
            }
            if let Some(value) = current {
                look_into(Bucket::Field(*field, value));
            }
        }
    }
}
