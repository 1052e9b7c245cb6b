//! Tracks the groups and versions of custom resources, for the registration of API services.

use crate::{
    definition_view::Definition,
    informer::{Change, Handler},
};
use parking_lot::Mutex;
use pintle_machinery::GroupVersion;
use std::collections::{HashMap, HashSet};
use tokio::sync::Notify;

/// The groups and versions that definitions serve, and the recent changes.
#[derive(Default)]
pub struct GroupVersions {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Default)]
struct State {
    /// The number of definitions that serve each.
    served: HashMap<GroupVersion, usize>,
    /// Changes that were not taken yet. Bounded by the number of groups and versions ever served.
    changed: HashSet<GroupVersion>,
}

impl GroupVersions {
    /// Whether a definition serves the group and version.
    pub fn is_served(&self, group_version: &GroupVersion) -> bool {
        self.state.lock().served.contains_key(group_version)
    }

    /// Waits for changes and takes them. Cancel safe: a cancelled call takes nothing. Supports one caller.
    pub async fn changed(&self) -> Vec<GroupVersion> {
        loop {
            let changed = std::mem::take(&mut self.state.lock().changed);
            if !changed.is_empty() {
                return changed.into_iter().collect();
            }
            self.notify.notified().await;
        }
    }
}

/// The served versions of a definition, whether or not it is established, until it is removed.
fn served(definition: &Definition) -> impl Iterator<Item = GroupVersion> {
    let versions = definition.spec.versions.iter().filter(|version| version.served);
    versions.map(|version| GroupVersion::new(definition.spec.group.clone(), version.name.clone()))
}

impl Handler for GroupVersions {
    fn changed(&self, change: &Change) {
        {
            let mut guard = self.state.lock();
            let State { served: counts, changed } = &mut *guard;
            for come in change.now.iter().flat_map(|now| served(now)) {
                let count = counts.entry(come.clone()).or_default();
                *count += 1;
                if *count == 1 {
                    changed.insert(come);
                }
            }
            for gone in change.before.iter().flat_map(|before| served(before)) {
                let Some(count) = counts.get_mut(&gone) else { continue };
                *count -= 1;
                if *count == 0 {
                    counts.remove(&gone);
                    changed.insert(gone);
                }
            }
            if changed.is_empty() {
                return;
            }
        }
        self.notify.notify_one();
    }
}
