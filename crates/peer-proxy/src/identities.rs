//! The identities of the other servers of the cluster: the leases in the namespace `kube-system` with the label of API
//! servers.

use parking_lot::Mutex;
use pintle_cacher::{CachedObject, Cacher};
use pintle_controller::{Delta, Deltas, Informer};
use pintle_controlplane::{COMPONENT, COMPONENT_LABEL};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;

const KUBE_SYSTEM: &str = "kube-system";

/// The other servers, and the holder of the lease of each, which differs for each run of the server.
#[derive(Debug)]
pub(crate) struct Identities {
    own: String,
    holders: Mutex<BTreeMap<String, String>>,
    changes: watch::Sender<u64>,
    synced: watch::Sender<bool>,
}

#[derive(Deserialize)]
struct Lease {
    spec: LeaseSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    holder_identity: String,
}

impl Identities {
    /// The identities of the servers beside that of this identity.
    pub(crate) fn new(own: &str) -> Identities {
        Identities {
            own: own.to_owned(),
            holders: Mutex::default(),
            changes: watch::Sender::new(0),
            synced: watch::Sender::new(false),
        }
    }

    /// The holder of each lease.
    pub(crate) fn holders(&self) -> BTreeMap<String, String> {
        self.holders.lock().clone()
    }

    /// Changes with each change of the holders.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until all leases that existed at the start are known.
    pub(crate) async fn wait_synced(&self) {
        // The sender lives as long as this.
        drop(self.synced.subscribe().wait_for(|synced| *synced).await);
    }

    /// Follows the watch cache of leases until `stopping` becomes true. If the resource is disabled there are no leases.
    pub(crate) async fn run(&self, leases: Option<&Arc<Cacher>>, stopping: watch::Receiver<bool>) {
        let Some(leases) = leases else {
            self.synced.send_replace(true);
            return;
        };
        let follow = |deltas: Deltas<'_>| {
            deltas.for_each(|delta| self.follow(&delta));
        };
        Informer::new(leases).run(stopping, follow).await;
    }

    fn follow(&self, delta: &Delta<'_>) {
        match delta {
            Delta::Set(lease) if lease.namespace() == KUBE_SYSTEM => {
                self.set(lease.name(), self.holder(lease));
            }
            Delta::Removed(lease) if lease.namespace() == KUBE_SYSTEM => self.set(lease.name(), None),
            Delta::Set(_) | Delta::Removed(_) => {}
            Delta::Listed(names) => {
                self.change(|holders| holders.retain(|name, _| names.contains(KUBE_SYSTEM, name)));
                self.synced.send_replace(true);
            }
        }
    }

    /// The holder of the lease of another server; `None` for other leases.
    fn holder(&self, lease: &CachedObject) -> Option<String> {
        if lease.labels().get(COMPONENT_LABEL) != Some(COMPONENT) || lease.name() == self.own {
            return None;
        }
        let lease: Lease = serde_json::from_slice(&lease.json()).ok()?;
        Some(lease.spec.holder_identity)
    }

    fn set(&self, name: &str, holder: Option<String>) {
        self.change(|holders| match holder {
            Some(holder) => drop(holders.insert(name.to_owned(), holder)),
            None => drop(holders.remove(name)),
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut holders = self.holders.lock();
        let before = holders.clone();
        change(&mut holders);
        if *holders != before {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}
