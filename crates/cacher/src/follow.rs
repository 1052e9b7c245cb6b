//! Follows a cache for as long as the server runs: reports the present objects, then every change.
//!
//! The server derives its own state from objects this way (roles, definitions, the objects that nodes may read). When
//! a watch is cut off, or the cache is unusable for a while, the follower starts again with all objects, and also
//! reports the objects that were deleted meanwhile.

use crate::{CachedObject, Cacher, EventType, Freshness, WatchItem, WatchOptions, WatchStart};
use pintle_storage::Revision;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::sync::watch;

/// The largest number of events in one batch.
const BATCH: usize = 256;
/// The delay before a watch that ended is started again.
const PAUSE: Duration = Duration::from_millis(100);

/// A notification to a follower.
#[derive(Debug)]
pub enum Heard<'item> {
    /// An object was created or changed, or exists at the start. This is its present state.
    Set(&'item Arc<CachedObject>),
    /// An object was deleted. This is its last state.
    Removed(&'item Arc<CachedObject>),
    /// The initial list is complete: objects that are not in it were deleted meanwhile.
    Only(&'item Names),
}

/// A set of object names, with their namespaces.
#[derive(Debug, Default)]
pub struct Names(HashSet<(String, String)>);

impl Names {
    /// Whether the set has this object. `namespace` is empty for cluster-scoped objects.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        self.0.contains(&(namespace.to_owned(), name.to_owned()))
    }
}

/// The state of one watch that was started with [`FollowedWatch::options`]: turns its items into notifications.
#[derive(Debug)]
pub struct FollowedWatch {
    /// The names in the initial list, until it is complete.
    initial: Option<Names>,
}

impl FollowedWatch {
    /// The options of the watch: the whole resource, with initial events.
    pub fn options() -> WatchOptions {
        WatchOptions { bookmarks: true, ..WatchOptions::new(WatchStart::InitialEvents(Freshness::Any)) }
    }

    /// The state at the start of the watch.
    pub fn begin() -> FollowedWatch {
        FollowedWatch { initial: Some(Names::default()) }
    }

    /// Reports one item to `tell`. Returns the revision up to which everything is reported; `None` while the initial
    /// list is incomplete.
    pub fn hear(&mut self, item: &WatchItem, tell: &mut dyn FnMut(Heard<'_>)) -> Option<Revision> {
        match item {
            WatchItem::Event { event_type, event } => {
                let object = event.current().or(event.previous())?;
                if let Some(Names(names)) = &mut self.initial {
                    names.insert((object.namespace().to_owned(), object.name().to_owned()));
                }
                tell(match event_type {
                    EventType::Added | EventType::Modified => Heard::Set(object),
                    EventType::Deleted => Heard::Removed(object),
                });
                self.initial.is_none().then(|| event.revision())
            }
            WatchItem::Bookmark { revision, initial_events_end } => {
                if let Some(names) = self.initial.take_if(|_| *initial_events_end) {
                    tell(Heard::Only(&names));
                }
                self.initial.is_none().then_some(*revision)
            }
        }
    }
}

/// Items that a watch delivered together.
pub struct Batch<'watch> {
    watch: &'watch mut FollowedWatch,
    items: std::vec::Drain<'watch, WatchItem>,
}

impl Batch<'_> {
    /// Reports the items, in order. Returns the last revision that [`FollowedWatch::hear`] returned.
    pub fn tell(self, mut tell: impl FnMut(Heard<'_>)) -> Option<Revision> {
        let Batch { watch, items } = self;
        items.fold(None, |reached, item| watch.hear(&item, &mut tell).or(reached))
    }
}

impl Cacher {
    /// Passes all objects, and then every change, to `take`, until `stopping` becomes true or its sender is dropped.
    /// `take` is called on this task and must not block.
    pub async fn follow(&self, mut stopping: watch::Receiver<bool>, mut take: impl FnMut(Batch<'_>) + Send) {
        let forever = async {
            loop {
                self.follow_once(&mut take).await;
                // The watch was cut off, or the cache is unusable: start again with all objects.
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = forever => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    async fn follow_once(&self, take: &mut (impl FnMut(Batch<'_>) + Send)) {
        let Ok(mut watcher) = self.watch(FollowedWatch::options()).await else { return };
        let mut watch = FollowedWatch::begin();
        let mut items = Vec::new();
        while watcher.next_batch(BATCH, &mut items).await {
            take(Batch { watch: &mut watch, items: items.drain(..) });
            items.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestStorage, config, start};
    use pintle_storage::Storage;
    use tokio::sync::mpsc;

    /// The notifications, one per line, and the revision that they reach.
    fn lines(batch: Batch<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        let reached = batch.tell(|heard| {
            lines.push(match heard {
                Heard::Set(object) => format!("set {}", object.name()),
                Heard::Removed(object) => format!("removed {}", object.name()),
                Heard::Only(names) => {
                    let there = ["a", "b", "c", "d"].into_iter().filter(|name| names.contains("n", name));
                    format!("only {}", there.collect::<String>())
                }
            });
        });
        lines.extend(reached.map(|reached| format!("up to {reached}")));
        lines
    }

    async fn hear(heard: &mut mpsc::UnboundedReceiver<String>, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line| line != last) {
            lines.push(heard.recv().await.expect("somebody follows"));
        }
        lines
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_hears_what_is_there_and_what_changes_and_everything_again_after_a_gap() {
        let storage = TestStorage::new();
        storage.put("/p/n/a", "").await;
        storage.put("/p/n/b", "").await;
        let cacher = start(&storage, config()).await;
        let (stop, stopping) = watch::channel(false);
        let (sender, mut heard) = mpsc::unbounded_channel();
        let following = {
            let cacher = cacher.clone();
            tokio::spawn(async move {
                let take = move |batch: Batch<'_>| {
                    for line in lines(batch) {
                        // The receiver has been dropped: the test has all the lines it needs.
                        let _ = sender.send(line);
                    }
                };
                cacher.follow(stopping, take).await;
            })
        };
        assert_eq!(hear(&mut heard, "up to 3").await, ["set a", "set b", "only ab", "up to 3"]);
        storage.put("/p/n/c", "").await;
        assert_eq!(hear(&mut heard, "up to 4").await, ["set c", "up to 4"]);
        storage.remove("/p/n/a").await;
        assert_eq!(hear(&mut heard, "up to 5").await, ["removed a", "up to 5"]);

        storage.control(|controls| {
            controls.breaks += 1;
            controls.no_watches = true;
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        storage.remove("/p/n/b").await;
        let last = storage.put("/p/n/d", "").await;
        storage.compact(last).await.unwrap();
        storage.control(|controls| controls.no_watches = false);
        let again = hear(&mut heard, &format!("up to {last}")).await;
        assert_eq!(again, ["set c", "set d", "only cd", "up to 7"]);

        stop.send_replace(true);
        following.await.unwrap();
        assert_eq!(heard.recv().await, None);
    }
}
