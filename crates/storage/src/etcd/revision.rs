//! Reads the latest revision once for all concurrent callers.

use super::client::Client;
use crate::{Revision, StorageError};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::oneshot;

type Answer = oneshot::Sender<Result<Revision, StorageError>>;

/// Shared reads of the latest revision. A read answers only callers that arrived before it began; otherwise its
/// result might be older than a write they know of.
#[derive(Default)]
pub(super) struct CurrentRevision {
    state: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    reading: bool,
    next: Vec<Answer>,
}

impl CurrentRevision {
    pub(super) async fn read(self: &Arc<Self>, client: &Arc<Client>) -> Result<Revision, StorageError> {
        let (answer, result) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.next.push(answer);
            if !state.reading {
                state.reading = true;
                // A separate task, since the first caller may be dropped while the others still wait.
                tokio::spawn(Arc::clone(self).read_all(Arc::clone(client)));
            }
        }
        result.await.unwrap_or(Err(StorageError::Closed))
    }

    async fn read_all(self: Arc<Self>, client: Arc<Client>) {
        loop {
            let answers = {
                let mut state = self.state.lock();
                if state.next.is_empty() {
                    state.reading = false;
                    return;
                }
                std::mem::take(&mut state.next)
            };
            // The later callers are answered after a panic, too.
            let read = AssertUnwindSafe(client.current_revision()).catch_unwind().await;
            let revision = read.unwrap_or(Err(StorageError::Closed));
            for answer in answers {
                // The caller may have been dropped.
                let _ = answer.send(revision.clone());
            }
        }
    }
}
