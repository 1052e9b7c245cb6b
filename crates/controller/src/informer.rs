//! Follows a watch cache for as long as the server runs: reports the present objects, then every change.
//!
//! When a watch is cut off, or the cache is unusable for a while, the informer starts again with all objects, and also
//! reports the objects that were deleted meanwhile.

use crate::{Deltas, ListWatch};
use parking_lot::Mutex;
use pintle_cacher::Cacher;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// The largest number of events in one batch.
const BATCH: usize = 256;
/// The delay before a watch that ended is started again.
const PAUSE: Duration = Duration::from_millis(100);

/// Follows the watch cache of one resource.
pub struct Informer {
    cacher: Arc<Cacher>,
}

impl Informer {
    /// Creates an informer, not yet running.
    pub fn new(cacher: &Arc<Cacher>) -> Informer {
        Informer { cacher: cacher.clone() }
    }

    /// Passes all objects, and then every change, to `handle`, until `stopping` becomes true or its sender is dropped.
    /// `handle` is called on this task and must not block.
    pub async fn run(&self, stopping: watch::Receiver<bool>, handle: impl FnMut(Deltas<'_>) + Send) {
        // Only this task locks it: each watch borrows the handler after the previous one.
        let handle = Mutex::new(handle);
        keep_watching(stopping, || self.watch_once(&handle)).await;
    }

    async fn watch_once(&self, handle: &Mutex<impl FnMut(Deltas<'_>) + Send>) {
        let Ok(mut watcher) = self.cacher.watch(ListWatch::options()).await else { return };
        let mut watch = ListWatch::begin();
        let mut items = Vec::new();
        while watcher.next_batch(BATCH, &mut items).await {
            (handle.lock())(Deltas::new(&mut watch, &mut items));
            items.clear();
        }
    }
}

/// Calls `watch_once`, which starts a watch and returns when it has ended, again and again until `stopping` becomes true
/// or its sender is dropped. A watch ends when it is cut off or the cache is unusable; the next one starts with all
/// objects.
pub async fn keep_watching<Watching: Future<Output = ()>>(
    mut stopping: watch::Receiver<bool>,
    mut watch_once: impl FnMut() -> Watching,
) {
    let forever = async {
        loop {
            watch_once().await;
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = forever => {}
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delta;
    use pintle_cacher::testing::{TestStorage, config, start};
    use pintle_storage::Storage;
    use tokio::sync::mpsc;

    /// The deltas, one per line, and the revision that they reach.
    fn lines(deltas: Deltas<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        let reached = deltas.for_each(|delta| {
            lines.push(match delta {
                Delta::Set(object) => format!("set {}", object.name()),
                Delta::Removed(object) => format!("removed {}", object.name()),
                Delta::Listed(names) => {
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
            let informer = Informer::new(&cacher);
            tokio::spawn(async move {
                let handle = move |deltas: Deltas<'_>| {
                    for line in lines(deltas) {
                        // The receiver has been dropped: the test has all the lines it needs.
                        let _ = sender.send(line);
                    }
                };
                informer.run(stopping, handle).await;
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
