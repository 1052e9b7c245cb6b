//! In which groups and versions custom resources are served, for whoever announces them.

use crate::{
    definition_view::Definition,
    informer::{Change, Handler},
};
use parking_lot::Mutex;
use pintle_machinery::GroupVersion;
use std::collections::{HashMap, HashSet};
use tokio::sync::Notify;

/// The groups and versions that definitions serve, and those of them that have just come or gone.
#[derive(Default)]
pub struct GroupVersions {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Default)]
struct State {
    /// How many definitions serve each.
    served: HashMap<GroupVersion, usize>,
    /// What nobody has asked for yet. No more than there ever were.
    changed: HashSet<GroupVersion>,
}

impl GroupVersions {
    /// Whether a definition serves it.
    pub fn is_served(&self, group_version: &GroupVersion) -> bool {
        self.state.lock().served.contains_key(group_version)
    }

    /// Waits until some have come or gone, and takes them. Cancelled while it waits, it takes nothing. For one caller.
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

/// A definition that is not established counts as well, and one that is on its way out until it is gone.
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
