//! The newest revision, read once for all who ask at the same time.

use super::client::Client;
use crate::{Revision, StorageError};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

type Answer = oneshot::Sender<Result<Revision, StorageError>>;

/// Reads of the newest revision. A read answers only those who asked before it began, or it might be older than what
/// they know of.
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
                // A task of its own, since the one who began may be dropped while the others still wait.
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
            let revision = client.current_revision().await;
            for answer in answers {
                // Whoever asked may have gone.
                let _ = answer.send(revision.clone());
            }
        }
    }
}
