//! Tells that objects of a resource have changed.

use super::Store;
use crate::serving::stopped;
use pintle_cacher::{Freshness, WatchItem, WatchOptions, WatchScope, WatchStart};
use std::{sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    sync::watch::{self, Receiver},
};

/// How many events are taken at once.
const BATCH: usize = 64;
/// How long until a watch that ended is begun again.
const PAUSE: Duration = Duration::from_millis(100);

/// A number that grows whenever an object of one of these stores has changed, until `stopping` turns true. It may grow
/// without a change, but never stays when there was one: who reads the objects after each growth has seen them all.
pub fn changes(stores: Vec<Arc<Store>>, stopping: &Receiver<bool>, runtime: &Handle) -> Receiver<u64> {
    let (sender, receiver) = watch::channel(0);
    for store in stores {
        let (sender, mut stopping) = (sender.clone(), stopping.clone());
        runtime.spawn(async move {
            loop {
                tokio::select! {
                    () = stopped(&mut stopping) => return,
                    () = follow(&store, &sender) => {}
                }
                // The watch was cut off, or the cache is not usable: there may have been changes that nobody told of.
                tokio::select! {
                    () = stopped(&mut stopping) => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        });
    }
    receiver
}

/// Watches once, from the state on.
async fn follow(store: &Store, sender: &watch::Sender<u64>) {
    let options = WatchOptions {
        start: WatchStart::InitialEvents(Freshness::Any),
        scope: WatchScope::All,
        trigger: None,
        predicate: None,
        bookmarks: true,
        deadline: None,
    };
    let Ok(mut watcher) = store.cacher().watch(options).await else { return };
    let mut items: Vec<WatchItem> = Vec::new();
    while watcher.next_batch(BATCH, &mut items).await {
        let is_change =
            |item: &WatchItem| !matches!(item, WatchItem::Bookmark { initial_events_end: false, .. });
        if items.drain(..).any(|item| is_change(&item)) {
            sender.send_modify(|changes| *changes += 1);
        }
    }
}
