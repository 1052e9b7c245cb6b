//! Watches: history from etcd up to the revision at which the hub takes over, then the hub.

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

/// The delay before history is requested again.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval of progress requests.
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct EtcdWatch {
    client: Arc<Client>,
    live: HubReceiver,
    request: WatchRequest,
    state: WatchState,
}

enum WatchState {
    /// Everything up to `after` was delivered; the events up to `until` are in history, later ones come from the hub.
    History {
        after: Revision,
        until: Revision,
        source: Option<Source>,
    },
    Live,
    /// An error was delivered.
    Ended,
}

/// The source of history. A dropped call of `next_batch` leaves it as it is, even while it opens: otherwise a caller
/// with short time-outs would never complete the opening.
enum Source {
    Opening(BoxFuture<'static, Result<Follow, Ended>>),
    Open(Box<Follow>),
}

impl EtcdWatch {
    /// A watch that reads history up to `until`, if any, before `live`.
    pub(super) fn new(
        client: Arc<Client>,
        live: HubReceiver,
        request: WatchRequest,
        until: Option<Revision>,
    ) -> EtcdWatch {
        let state = match until {
            Some(until) => WatchState::History { after: request.after, until, source: None },
            None => WatchState::Live,
        };
        EtcdWatch { client, live, request, state }
    }
}

impl WatchReceiver for EtcdWatch {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            loop {
                let WatchState::History { after, until, source } = &mut self.state else {
                    return match self.state {
                        WatchState::Ended => None,
                        _ => self.live.next_batch().await,
                    };
                };
                let prefix = &self.request.prefix;
                match history(&self.client, prefix, *after, *until, source).await {
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
                    Err(Ended::Compacted(compacted) | Ended::Reverted(compacted)) => {
                        self.state = WatchState::Ended;
                        return Some(vec![StorageEvent::Error(StorageError::Compacted { compacted })]);
                    }
                    Err(Ended::Broken(error)) => {
                        tracing::debug!(%error, prefix, "reading history from etcd again");
                        *source = None;
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

/// The next piece of history, and the revision that it reaches. A dropped call loses nothing: the source is kept, and
/// events taken from it are returned without an await, except for the rare read of a deleted pair, before which the
/// source is dropped.
async fn history(
    client: &Arc<Client>,
    prefix: &str,
    after: Revision,
    until: Revision,
    source: &mut Option<Source>,
) -> Result<(Vec<StorageEvent>, Revision), Ended> {
    let step = match source.get_or_insert_with(|| Source::Opening(open(client, prefix, after))) {
        Source::Opening(opening) => {
            let opened = opening.await?;
            *source = Some(Source::Open(Box::new(opened)));
            return Ok((Vec::new(), after));
        }
        Source::Open(follow) => loop {
            // A member that is still reading history does not answer, so the request is repeated.
            follow.ask_for_progress();
            if let Ok(step) = timeout(ASK_AGAIN, follow.next()).await {
                break step?;
            }
        },
    };
    match step {
        Step::Progress(reached) => Ok((Vec::new(), reached)),
        Step::Events(events) => {
            let reached = follow::last_revision(&events);
            // If the call is dropped during the read of a deleted pair, this piece is read again.
            let open = source.take();
            let events = follow::events(client, prefix, events, after, until).await?;
            *source = open;
            Ok((events, reached))
        }
    }
}

fn open(client: &Arc<Client>, prefix: &str, after: Revision) -> BoxFuture<'static, Result<Follow, Ended>> {
    let (client, prefix) = (Arc::clone(client), prefix.to_owned());
    Box::pin(async move { Follow::open(&client, &prefix, after).await })
}
