//! The history of watches, from etcd.

use super::{
    client::Client,
    follow::{self, Ended, Follow, Step},
};
use crate::{BoxFuture, Revision, StorageError, StorageEvent, replay::History};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// The delay before history is requested again.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval of progress requests.
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct EtcdHistory {
    client: Arc<Client>,
    source: Option<Source>,
}

/// The source of history. A dropped call of `next_batch` leaves it as it is, even while it opens: otherwise a caller
/// with short time-outs would never complete the opening.
enum Source {
    Opening(BoxFuture<'static, Result<Follow, Ended>>),
    Open(Box<Follow>),
}

impl EtcdHistory {
    pub(super) fn new(client: Arc<Client>) -> EtcdHistory {
        EtcdHistory { client, source: None }
    }
}

impl History for EtcdHistory {
    fn read<'a>(
        &'a mut self,
        prefix: &'a str,
        after: Revision,
        until: Revision,
    ) -> BoxFuture<'a, Result<(Vec<StorageEvent>, Revision), StorageError>> {
        Box::pin(async move {
            loop {
                match history(&self.client, prefix, after, until, &mut self.source).await {
                    Ok(piece) => return Ok(piece),
                    Err(Ended::Compacted(compacted) | Ended::Reverted(compacted)) => {
                        return Err(StorageError::Compacted { compacted });
                    }
                    Err(Ended::Broken(error)) => {
                        tracing::debug!(%error, prefix, "reading history from etcd again");
                        self.source = None;
                        sleep(PAUSE).await;
                    }
                }
            }
        })
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
