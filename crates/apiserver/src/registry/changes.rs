//! Reports that objects of a resource have changed.

use super::Store;
use pintle_controller::Informer;
use pintle_supervisor::Supervisor;
use std::sync::Arc;
use tokio::sync::watch::{self, Receiver};

/// A counter that increases after every change of an object in these stores, until `stopping` becomes true. It may
/// increase without a change; a reader that reads the objects after each increase misses no change.
pub fn changes(stores: Vec<Arc<Store>>, stopping: &Receiver<bool>, supervisor: &Supervisor) -> Receiver<u64> {
    let (sender, receiver) = watch::channel(0);
    for store in stores {
        let (sender, stopping) = (sender.clone(), stopping.clone());
        let part = format!("informer/{}", store.resource().group_resource());
        supervisor.spawn_restarting(part, move || {
            let (store, sender, stopping) = (store.clone(), sender.clone(), stopping.clone());
            async move {
                let informer = Informer::new(store.cacher());
                let counting = informer.run(stopping, |deltas| {
                    let mut changed = false;
                    deltas.for_each(|_| changed = true);
                    if changed {
                        sender.send_modify(|changes| *changes += 1);
                    }
                });
                counting.await;
            }
        });
    }
    receiver
}
