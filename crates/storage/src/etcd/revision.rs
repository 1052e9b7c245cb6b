//! Reads the latest revision once for all concurrent callers.

use super::client::Client;
use crate::{Revision, StorageError};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::oneshot;

/// A source of the latest revision.
pub(super) trait ReadRevision: Send + Sync + 'static {
    /// Reads the latest revision, linearizably.
    fn read_revision(&self) -> impl Future<Output = Result<Revision, StorageError>> + Send;
}

impl ReadRevision for Client {
    fn read_revision(&self) -> impl Future<Output = Result<Revision, StorageError>> + Send {
        self.current_revision()
    }
}

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
    pub(super) async fn read(
        self: &Arc<Self>,
        source: &Arc<impl ReadRevision>,
    ) -> Result<Revision, StorageError> {
        let (answer, result) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.next.push(answer);
            if !state.reading {
                state.reading = true;
                // A separate task, since the first caller may be dropped while the others still wait.
                tokio::spawn(Arc::clone(self).read_all(Arc::clone(source)));
            }
        }
        result.await.unwrap_or(Err(StorageError::Closed))
    }

    async fn read_all(self: Arc<Self>, source: Arc<impl ReadRevision>) {
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
            let read = AssertUnwindSafe(source.read_revision()).catch_unwind().await;
            let revision = read.unwrap_or(Err(StorageError::Closed));
            for answer in answers {
                // The caller may have been dropped.
                let _ = answer.send(revision.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tokio::{sync::Semaphore, time::timeout};

    /// A source whose first read panics. Each read waits for a permit.
    struct PanicsFirst {
        reads: AtomicU64,
        permits: Semaphore,
    }

    impl ReadRevision for PanicsFirst {
        async fn read_revision(&self) -> Result<Revision, StorageError> {
            self.permits.acquire().await.unwrap().forget();
            let read = self.reads.fetch_add(1, Ordering::Relaxed);
            assert!(read > 0, "the first read panics on command");
            Ok(Revision(read))
        }
    }

    #[tokio::test]
    async fn after_a_panic_the_waiting_callers_and_those_behind_them_are_answered() {
        let source = Arc::new(PanicsFirst { reads: AtomicU64::new(0), permits: Semaphore::new(0) });
        let revision = Arc::new(CurrentRevision::default());
        let begin = || {
            let (revision, source) = (Arc::clone(&revision), Arc::clone(&source));
            tokio::spawn(async move {
                let read = timeout(Duration::from_secs(10), revision.read(&source)).await;
                read.expect("it is answered")
            })
        };
        let first = begin();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        // These came after the first read had begun, and share the second one.
        let others = [begin(), begin()];
        tokio::task::yield_now().await;
        source.permits.add_permits(2);
        assert_eq!(first.await.unwrap(), Err(StorageError::Closed));
        for other in others {
            assert_eq!(other.await.unwrap(), Ok(Revision(1)));
        }
        // Nobody reads any more; the next caller begins a read of its own.
        source.permits.add_permits(1);
        assert_eq!(begin().await.unwrap(), Ok(Revision(2)));
    }
}
