//! A watch: history from etcd up to where the hub takes over, then the hub.

use super::{
    client::Client,
    follow::{self, Ended, Follow, Step},
};
use crate::{BoxFuture, Revision, StorageError, StorageEvent, WatchReceiver, WatchRequest, hub::HubReceiver};
use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The time before history is asked for again.
const PAUSE: Duration = Duration::from_millis(50);
/// How often progress is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct EtcdWatch {
    client: Arc<Client>,
    live: HubReceiver,
    request: WatchRequest,
    state: WatchState,
}

enum WatchState {
    /// Everything up to `after` was delivered; what follows up to `until` is in history, what follows that comes live.
    History {
        after: Revision,
        until: Revision,
        follow: Option<Box<Follow>>,
    },
    Live,
    /// An error was delivered.
    Ended,
}

impl EtcdWatch {
    /// A watch that needs history up to `until`, if any, before `live`.
    pub(super) fn new(
        client: Arc<Client>,
        live: HubReceiver,
        request: WatchRequest,
        until: Option<Revision>,
    ) -> EtcdWatch {
        let state = match until {
            Some(until) => WatchState::History { after: request.after, until, follow: None },
            None => WatchState::Live,
        };
        EtcdWatch { client, live, request, state }
    }
}

impl WatchReceiver for EtcdWatch {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            loop {
                let WatchState::History { after, until, follow } = &mut self.state else {
                    return match self.state {
                        WatchState::Ended => None,
                        _ => self.live.next_batch().await,
                    };
                };
                let prefix = &self.request.prefix;
                match history(&self.client, prefix, *after, *until, follow).await {
                    Ok((events, reached)) => {
                        if reached >= *until {
                            self.state = WatchState::Live;
                        } else {
                            *after = reached;
                        }
                        if !events.is_empty() {
                            return Some(events);
                        }
                    }
                    Err(Ended::Compacted(compacted)) => {
                        self.state = WatchState::Ended;
                        return Some(vec![StorageEvent::Error(StorageError::Compacted { compacted })]);
                    }
                    Err(Ended::Broken(error)) => {
                        tracing::debug!(%error, prefix, "reading history from etcd again");
                        *follow = None;
                        sleep(PAUSE).await;
                    }
                }
            }
        })
    }

    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        self.live.queued_revision()
    }
}

/// The next piece of history, and the revision up to which it reaches. A dropped call loses nothing: the watch is kept,
/// and what is taken from it is returned without waiting, but for the rare read of a deleted pair, before which the
/// watch is dropped.
async fn history(
    client: &Client,
    prefix: &str,
    after: Revision,
    until: Revision,
    follow: &mut Option<Box<Follow>>,
) -> Result<(Vec<StorageEvent>, Revision), Ended> {
    let open = match follow.take() {
        Some(open) => open,
        None => Box::new(Follow::open(client, prefix, after).await?),
    };
    let open = follow.insert(open);
    let step = loop {
        // A member that is still reading history does not answer, so it is asked again.
        open.ask_for_progress();
        if let Ok(step) = timeout(ASK_AGAIN, open.next()).await {
            break step?;
        }
    };
    match step {
        Step::Progress(reached) => Ok((Vec::new(), reached)),
        Step::Events(events) => {
            let reached = follow::last_revision(&events);
            // Should reading a deleted pair be given up, all this is read again.
            let open = follow.take();
            let events = follow::events(client, prefix, events, after, until).await?;
            *follow = open;
            Ok((events, reached))
        }
    }
}
