//! Watches: history up to the revision at which the hub takes over, then the hub.

use super::{read, shared::Shared};
use crate::{BoxFuture, Revision, StorageError, StorageEvent, WatchReceiver, WatchRequest, hub::HubReceiver};
use std::sync::{Arc, atomic::AtomicU64};

pub(super) struct EmbeddedWatch {
    shared: Arc<Shared>,
    live: HubReceiver,
    request: WatchRequest,
    state: WatchState,
}

enum WatchState {
    /// Everything up to `after` was delivered; the events up to `until` are in history, later ones come from the hub.
    History {
        after: Revision,
        until: Revision,
    },
    Live,
    /// An error was delivered.
    Ended,
}

impl EmbeddedWatch {
    /// A watch that reads history up to `until`, if any, before `live`.
    pub(super) fn new(
        shared: Arc<Shared>,
        live: HubReceiver,
        request: WatchRequest,
        until: Option<Revision>,
    ) -> EmbeddedWatch {
        let state = match until {
            Some(until) => WatchState::History { after: request.after, until },
            None => WatchState::Live,
        };
        EmbeddedWatch { shared, live, request, state }
    }

    /// Reads the next piece of history. After a dropped call the piece is read again.
    async fn history(
        &self,
        after: Revision,
        until: Revision,
    ) -> Result<(Vec<StorageEvent>, Revision), StorageError> {
        let shared = Arc::clone(&self.shared);
        let prefix = self.request.prefix.clone();
        let read = tokio::task::spawn_blocking(move || read::history(&shared, &prefix, after, until));
        read.await.unwrap_or_else(|error| Err(StorageError::Engine(error.to_string())))
    }
}

impl WatchReceiver for EmbeddedWatch {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            loop {
                let (after, until) = match self.state {
                    WatchState::History { after, until } => (after, until),
                    WatchState::Live => return self.live.next_batch().await,
                    WatchState::Ended => return None,
                };
                match self.history(after, until).await {
                    Ok((events, reached)) => {
                        self.state = if reached < until {
                            WatchState::History { after: reached, until }
                        } else {
                            WatchState::Live
                        };
                        if !events.is_empty() {
                            return Some(events);
                        }
                    }
                    Err(StorageError::Closed) => {
                        self.state = WatchState::Ended;
                        return None;
                    }
                    Err(error) => {
                        self.state = WatchState::Ended;
                        return Some(vec![StorageEvent::Error(error)]);
                    }
                }
            }
        })
    }

    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        self.live.queued_revision()
    }
}
