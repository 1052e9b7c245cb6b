//! Watches that begin with history: the events before the revision at which the hub takes over, then the hub's.

use crate::{BoxFuture, Revision, StorageError, StorageEvent, WatchReceiver, WatchRequest, hub::HubReceiver};
use std::sync::{Arc, atomic::AtomicU64};

/// A source of the events that were published before a watch began.
pub(crate) trait History: Send + 'static {
    /// Reads the next piece of the events of a prefix after `after` and up to `until`. Returns it with the revision
    /// that it reaches. A dropped call loses nothing: the piece is read again.
    ///
    /// # Errors
    /// The error with which the watch ends. [`StorageError::Closed`] ends it without an event.
    fn read<'a>(
        &'a mut self,
        prefix: &'a str,
        after: Revision,
        until: Revision,
    ) -> BoxFuture<'a, Result<(Vec<StorageEvent>, Revision), StorageError>>;
}

/// A watch of an engine that reads its history from a medium.
pub(crate) struct ReplayWatch<H> {
    live: HubReceiver,
    prefix: String,
    state: State<H>,
}

enum State<H> {
    /// Everything up to `after` was delivered; the events up to `until` are in history, later ones come from the hub.
    History {
        history: H,
        after: Revision,
        until: Revision,
    },
    Live,
    /// An error was delivered, or the engine was closed.
    Ended,
}

impl<H: History> ReplayWatch<H> {
    /// A watch that reads history up to `until`, if any, before `live`.
    pub(crate) fn new(
        history: H,
        live: HubReceiver,
        request: WatchRequest,
        until: Option<Revision>,
    ) -> ReplayWatch<H> {
        let state = match until {
            Some(until) => State::History { history, after: request.after, until },
            None => State::Live,
        };
        ReplayWatch { live, prefix: request.prefix, state }
    }
}

impl<H: History> WatchReceiver for ReplayWatch<H> {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            loop {
                let (history, after, until) = match &mut self.state {
                    State::History { history, after, until } => (history, after, *until),
                    State::Live => return self.live.next_batch().await,
                    State::Ended => return None,
                };
                match history.read(&self.prefix, *after, until).await {
                    Ok((events, reached)) => {
                        if reached < until {
                            *after = reached;
                        } else {
                            self.state = State::Live;
                        }
                        if !events.is_empty() {
                            return Some(events);
                        }
                    }
                    Err(StorageError::Closed) => {
                        self.state = State::Ended;
                        return None;
                    }
                    Err(error) => {
                        self.state = State::Ended;
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
