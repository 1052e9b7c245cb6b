//! The one watch of etcd that feeds all watches of this server.
//!
//! ```text
//!   etcd ──► Follow ──► Feed ──► hub ──► a queue for each watch
//!                        │ recent events: for watches that begin a little earlier
//! ```
//!
//! - `published` is the revision up to which everything has been queued. It is the revision of an event, or one from
//!   a member's progress response, or the latest revision when the feed began.
//! - After a failure the feed resumes right after `published`, with any member that answers, and the watches see no
//!   gap. Only if that revision is compacted do they end, with [`StorageError::Compacted`], and the feed restarts.
//! - A cluster that lost writes, or was restored from a snapshot, assigns the later revisions again. Events already
//!   delivered for them are wrong then: all watches end, and the feed restarts at the cluster's revision. Only this
//!   decreases `published`.
//! - A reader that has learned of a revision by other means waits for the feed to reach it ([`Feed::reach`]). If the
//!   feed does not reach it in time, the hub's queued revisions do not cover that revision, and the hub is notified
//!   ([`WatchHub::doubt`]): dependent readers then fall back to their own read.
//!
//! Lock order: `recent`, then the hub.

use super::{
    client::Client,
    compaction_key::compacted_revision,
    follow::{self, Ended, Follow, Step},
    own_writes::OwnWrites,
};
use crate::{
    Revision, StorageError, StorageEvent,
    hub::{HubReceiver, WatchHub},
};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

/// The bounds of the recent events, in events and in bytes of values, whichever is reached first.
const RECENT_EVENTS: usize = 4096;
const RECENT_BYTES: usize = 4 << 20;
/// A member that sends nothing for this long, while an event or progress is due, is replaced by another.
const SILENCE: Duration = Duration::from_secs(1);
/// The interval of progress requests while a caller waits: a member that is behind with a watch does not answer.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The bounds of the back-off between attempts to follow.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// The one watch of etcd; see the module's documentation.
pub(super) struct Feed {
    client: Arc<Client>,
    hub: Arc<WatchHub>,
    recent: Mutex<Recent>,
    own_writes: Arc<OwnWrites>,
    published: watch::Sender<Revision>,
    /// The latest revision that a caller waits for.
    wanted: AtomicU64,
    asked: Notify,
}

struct Recent {
    events: VecDeque<StorageEvent>,
    bytes: usize,
    /// All events after this revision up to `published` are in `events`.
    start: Revision,
    /// Older history is compacted, as far as this process knows.
    compacted: Revision,
}

impl Feed {
    /// A feed of a store that is at `revision`.
    pub(super) fn new(client: Arc<Client>, revision: Revision) -> Arc<Feed> {
        let recent = Recent { events: VecDeque::new(), bytes: 0, start: revision, compacted: Revision(0) };
        Arc::new(Feed {
            client,
            hub: WatchHub::new(revision),
            recent: Mutex::new(recent),
            own_writes: Arc::default(),
            published: watch::Sender::new(revision),
            wanted: AtomicU64::new(0),
            asked: Notify::new(),
        })
    }

    pub(super) fn hub(&self) -> &Arc<WatchHub> {
        &self.hub
    }

    /// The writes of this process, whose events get their payloads.
    pub(super) fn own_writes(&self) -> &Arc<OwnWrites> {
        &self.own_writes
    }

    /// A watch of all events published from now on; and, if it needs earlier events that are not in memory, the
    /// revision up to which the caller has to read them from history.
    pub(super) fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> Result<(HubReceiver, Option<Revision>), StorageError> {
        let recent = self.recent.lock();
        if after < recent.compacted {
            return Err(StorageError::Compacted { compacted: recent.compacted });
        }
        let (live, published) = self.hub.watch(prefix.to_owned(), after)?;
        if after >= published {
            return Ok((live, None));
        }
        if after < recent.start {
            return Ok((live, Some(published)));
        }
        let wanted = |event: &&StorageEvent| match event {
            StorageEvent::Write { revision, kv, .. } => {
                *revision > after && kv.key.as_str().starts_with(prefix)
            }
            StorageEvent::Progress(_) | StorageEvent::Error(_) => false,
        };
        live.prepend(recent.events.iter().filter(wanted).cloned().collect());
        Ok((live, None))
    }

    /// The oldest revision that is kept, as far as this process knows.
    pub(super) fn compacted(&self) -> Revision {
        self.recent.lock().compacted
    }

    /// Records that history before `revision` is compacted.
    pub(super) fn note_compacted(&self, revision: Revision) {
        let mut recent = self.recent.lock();
        recent.compacted = recent.compacted.max(revision);
    }

    /// Waits until everything up to `revision`, which has an event, is queued. Returns whether it is.
    pub(super) async fn reach_event(&self, revision: Revision, patience: Duration) -> bool {
        // The event is on its way, mostly on the same connection: a progress request is rarely needed.
        let first = patience / 4;
        self.wait(revision, first).await || self.reach(revision, patience.saturating_sub(first)).await
    }

    /// Waits until everything up to `revision`, which the store has reported, is queued. Returns whether it is.
    pub(super) async fn reach(&self, revision: Revision, patience: Duration) -> bool {
        if *self.published.borrow() >= revision {
            return true;
        }
        self.wanted.fetch_max(revision.0, Ordering::AcqRel);
        self.asked.notify_one();
        self.wait(revision, patience).await
    }

    async fn wait(&self, revision: Revision, patience: Duration) -> bool {
        let mut published = self.published.subscribe();
        let reached = published.wait_for(|published| *published >= revision);
        matches!(timeout(patience, reached).await, Ok(Ok(_)))
    }

    /// Follows the store until it is aborted.
    pub(super) async fn run(self: Arc<Self>, first: Follow) {
        let client = Arc::clone(&self.client);
        self.follow_all(EtcdWatches { client, next: Some(first), suspected: Revision(0) }).await;
    }

    /// Follows watches, one after the other. It never ends.
    async fn follow_all(&self, mut watches: impl Watches) {
        let mut backoff = BACKOFF.0;
        loop {
            let before = *self.published.borrow();
            let following = watches.follow(self, before);
            let Some(ended) = caught(following).await else {
                tracing::error!("the handling of an event of etcd panicked; beginning anew");
                sleep(BACKOFF.1).await;
                let revision = watches.current_revision().await.max(*self.published.borrow());
                self.begin_anew(revision, revision);
                continue;
            };
            match ended {
                Ended::Compacted(compacted) => {
                    tracing::warn!(%compacted, "the watch of etcd fell behind the compaction; beginning anew");
                    let revision = watches.current_revision().await.max(*self.published.borrow());
                    self.begin_anew(revision, compacted);
                }
                Ended::Reverted(revision) => {
                    tracing::error!(
                        %revision, known = %before,
                        "etcd lost writes that it had acknowledged, or was restored; beginning anew"
                    );
                    self.wanted.fetch_min(revision.0, Ordering::AcqRel);
                    self.begin_anew(revision, revision);
                }
                Ended::Broken(error) => {
                    if *self.published.borrow() > before {
                        backoff = BACKOFF.0;
                    }
                    tracing::warn!(%error, revision = %*self.published.borrow(), "the watch of etcd ended; watching again");
                    sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }

    fn prefix(&self) -> &str {
        &self.client.options().prefix
    }

    /// Follows one watch to its end. `suspected` is the revision that a member was suspected to withhold: if a second
    /// member does not send it either, there is no event for it.
    async fn follow(&self, mut follow: Follow, suspected: &mut Revision) -> Ended {
        // The start of the silence while a caller waits, and the time of the next progress request.
        let mut silent_since: Option<Instant> = None;
        let mut ask_at = Instant::now();
        loop {
            let waited_for = Revision(self.wanted.load(Ordering::Acquire));
            let waiting = waited_for > *self.published.borrow();
            if waiting {
                silent_since.get_or_insert_with(Instant::now);
                if ask_at <= Instant::now() {
                    follow.ask_for_progress();
                    ask_at = Instant::now() + ASK_AGAIN;
                }
            } else {
                silent_since = None;
            }
            let step = tokio::select! {
                biased;
                step = follow.next() => step,
                () = self.asked.notified() => continue,
                () = sleep_until(ask_at), if waiting => {
                    if silent_since.is_some_and(|since| since.elapsed() >= SILENCE) && waited_for > *suspected {
                        *suspected = waited_for;
                        follow.give_up(&self.client);
                        return Ended::Broken(format!("the member tells nothing of revision {waited_for}"));
                    }
                    continue;
                }
            };
            silent_since = None;
            let published = *self.published.borrow();
            match step {
                Ok(Step::Events(events)) => {
                    let reached = follow::last_revision(&events);
                    for compacted in events.iter().filter_map(|event| compacted_revision(event.kv.as_ref()?))
                    {
                        self.note_compacted(compacted);
                    }
                    match follow::events(&self.client, self.prefix(), events, published, reached).await {
                        Ok(mut events) => {
                            self.own_writes.restore(&mut events);
                            self.publish(events, reached);
                        }
                        Err(ended) => return ended,
                    }
                }
                Ok(Step::Progress(reached)) => self.publish(Vec::new(), reached),
                Err(ended) => return ended,
            }
        }
    }

    fn publish(&self, events: Vec<StorageEvent>, reached: Revision) {
        let reached = reached.max(*self.published.borrow());
        {
            let mut recent = self.recent.lock();
            self.hub.publish(&events, reached);
            for mut event in events {
                if let StorageEvent::Write { kv, .. } = &mut event {
                    kv.value.keep_stored_form();
                }
                recent.push(event);
            }
        }
        self.published.send_replace(reached);
    }

    /// Restarts the feed: the events since the last one are lost. Watches begin at `revision`, and history before
    /// `compacted` is gone.
    fn begin_anew(&self, revision: Revision, compacted: Revision) {
        {
            let mut recent = self.recent.lock();
            *recent = Recent {
                events: VecDeque::new(),
                bytes: 0,
                start: revision,
                compacted: recent.compacted.max(compacted).min(revision),
            };
            self.hub.restart(revision, &StorageError::Compacted { compacted });
        }
        self.published.send_replace(revision);
    }
}

/// The watches of a store that a feed follows.
trait Watches: Send {
    /// Follows a watch of what comes after a revision, to its end, and publishes its events in the feed.
    fn follow(&mut self, feed: &Feed, after: Revision) -> impl Future<Output = Ended> + Send;

    /// The store's latest revision, as soon as the store tells it.
    fn current_revision(&self) -> impl Future<Output = Revision> + Send;
}

/// The watches of etcd.
struct EtcdWatches {
    client: Arc<Client>,
    /// The watch that is open already.
    next: Option<Follow>,
    /// The revision that a member was suspected to withhold.
    suspected: Revision,
}

impl Watches for EtcdWatches {
    async fn follow(&mut self, feed: &Feed, after: Revision) -> Ended {
        let follow = match self.next.take() {
            Some(follow) => Ok(follow),
            None => Follow::open(&self.client, feed.prefix(), after).await,
        };
        let ended = match follow {
            Ok(follow) => feed.follow(follow, &mut self.suspected).await,
            Err(ended) => ended,
        };
        if matches!(ended, Ended::Reverted(_)) {
            self.suspected = Revision(0);
        }
        ended
    }

    async fn current_revision(&self) -> Revision {
        loop {
            match self.client.current_revision().await {
                Ok(revision) => return revision,
                Err(error) => {
                    tracing::warn!(%error, "etcd does not tell its revision");
                    sleep(BACKOFF.1).await;
                }
            }
        }
    }
}

/// Runs a watch to its end; `None` after a panic, when it is not known what was published of an event.
async fn caught(following: impl Future<Output = Ended>) -> Option<Ended> {
    AssertUnwindSafe(following).catch_unwind().await.ok()
}

impl Recent {
    fn push(&mut self, event: StorageEvent) {
        self.bytes += size(&event);
        self.events.push_back(event);
        // All events of a revision are dropped together, or a watch that begins there would miss some.
        while self.events.len() > RECENT_EVENTS || self.bytes > RECENT_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= size(&oldest);
            if let StorageEvent::Write { revision, .. } = oldest {
                self.start = self.start.max(revision);
            }
        }
    }
}

fn size(event: &StorageEvent) -> usize {
    match event {
        StorageEvent::Write { kv, .. } => kv.value.len(),
        StorageEvent::Progress(_) | StorageEvent::Error(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{etcd::options::EtcdOptions, watch::WatchReceiver as _};
    use std::sync::mpsc;

    /// Watches of which the first publishes a revision and panics; the second publishes another and stays open.
    struct PanicsFirst {
        follows: mpsc::Sender<Revision>,
        panicked: bool,
    }

    impl Watches for PanicsFirst {
        async fn follow(&mut self, feed: &Feed, after: Revision) -> Ended {
            self.follows.send(after).unwrap();
            if !std::mem::replace(&mut self.panicked, true) {
                feed.publish(Vec::new(), Revision(6));
                panic!("the first watch panics on command");
            }
            feed.publish(Vec::new(), Revision(9));
            std::future::pending().await
        }

        async fn current_revision(&self) -> Revision {
            Revision(8)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_panic_watches_end_and_the_feed_goes_on_at_the_stores_revision() {
        let client = Client::new(EtcdOptions::new(["http://127.0.0.1:1"], "/r/")).unwrap();
        let feed = Feed::new(Arc::new(client), Revision(5));
        let (mut old, _) = feed.watch("/r/", Revision(5)).unwrap();
        let (follows, followed) = mpsc::channel();
        let running = tokio::spawn({
            let feed = Arc::clone(&feed);
            async move { feed.follow_all(PanicsFirst { follows, panicked: false }).await }
        });
        assert!(feed.reach(Revision(9), Duration::from_secs(10)).await, "the feed goes on");
        assert_eq!(followed.try_iter().collect::<Vec<_>>(), [Revision(5), Revision(8)]);
        // It is not known which events were published: watches begin anew, and none can begin before.
        let compacted = StorageError::Compacted { compacted: Revision(8) };
        let ended = timeout(Duration::from_secs(10), old.next_batch()).await.unwrap();
        assert_eq!(ended, Some(vec![StorageEvent::Error(compacted.clone())]));
        assert_eq!(feed.watch("/r/", Revision(7)).map(drop), Err(compacted));
        assert!(feed.watch("/r/", Revision(8)).is_ok());
        running.abort();
    }
}
