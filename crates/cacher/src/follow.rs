//! Following a cache for as long as a server runs: what there is, then every change.
//!
//! What a server keeps of objects for itself (roles, definitions, what nodes may read) it learns here. A watch can be cut
//! off, and a cache can be unusable for a while; then everything is looked at again, and what went meanwhile is told of, too.

use crate::{CachedObject, Cacher, EventType, Freshness, WatchItem, WatchOptions, WatchStart};
use pintle_storage::Revision;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::sync::watch;

/// How many events are taken at once.
const BATCH: usize = 256;
/// How long until a watch that ended is begun again.
const PAUSE: Duration = Duration::from_millis(100);

/// What a follower hears.
#[derive(Debug)]
pub enum Heard<'item> {
    /// An object is there, as it is now.
    Set(&'item Arc<CachedObject>),
    /// An object is gone. This is how it was.
    Removed(&'item Arc<CachedObject>),
    /// Everything that is there has been told of. What has none of these names went while nobody was looking.
    Only(&'item Names),
}

/// Names of objects.
#[derive(Debug, Default)]
pub struct Names(HashSet<(String, String)>);

impl Names {
    /// Whether an object's is among them. The namespace of what has none is empty.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        self.0.contains(&(namespace.to_owned(), name.to_owned()))
    }
}

/// One watch that began with [`FollowedWatch::options`]: what its items say to a follower.
#[derive(Debug)]
pub struct FollowedWatch {
    /// What was there, while that is told.
    initial: Option<Names>,
}

impl FollowedWatch {
    /// How to watch: everything, from the state on.
    pub fn options() -> WatchOptions {
        WatchOptions { bookmarks: true, ..WatchOptions::new(WatchStart::InitialEvents(Freshness::Any)) }
    }

    /// A watch of which nothing has been heard.
    pub fn begin() -> FollowedWatch {
        FollowedWatch { initial: Some(Names::default()) }
    }

    /// Tells what an item says. Returns up to which revision everything has been told then; `None` while what was there
    /// is being told.
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

/// Items of a watch that came together.
pub struct Batch<'watch> {
    watch: &'watch mut FollowedWatch,
    items: std::vec::Drain<'watch, WatchItem>,
}

impl Batch<'_> {
    /// Tells what they say, in order. Returns what [`FollowedWatch::hear`] returned last that was a revision.
    pub fn tell(self, mut tell: impl FnMut(Heard<'_>)) -> Option<Revision> {
        let Batch { watch, items } = self;
        items.fold(None, |reached, item| watch.hear(&item, &mut tell).or(reached))
    }
}

impl Cacher {
    /// Hands everything that there is, and every change, to `take`, until `stopping` turns true or nobody can say so any
    /// more. `take` is called from this task and must not wait.
    pub async fn follow(&self, mut stopping: watch::Receiver<bool>, mut take: impl FnMut(Batch<'_>) + Send) {
        let forever = async {
            loop {
                self.follow_once(&mut take).await;
                // The watch was cut off, or the cache is not usable: everything is looked at again.
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

    /// What is heard, a line each; and up to where everything was.
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
                        // Whoever does not listen any more has heard enough.
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
