//! Processes the names of a work queue.

use crate::WorkQueue;
use futures_util::future::{BoxFuture, join_all};

/// Brings the objects of one name to their desired state.
pub trait Reconciler: Send + Sync {
    /// The reason of a failure.
    type Error: Send;

    /// The number of names that are processed concurrently.
    fn workers(&self) -> usize {
        1
    }

    /// Processes one name. After a failure the name is queued again with back-off.
    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Self::Error>>;

    /// Logs a failure.
    fn log_failure(&self, name: &str, error: &Self::Error);
}

impl WorkQueue {
    /// Processes names for ever. Call it once at a time; after a panic it can be called again, and retries the names
    /// that were in work.
    pub async fn process<R: Reconciler>(&self, reconciler: &R) {
        self.recover();
        join_all((0..reconciler.workers()).map(|_| self.work(reconciler))).await;
    }

    async fn work<R: Reconciler>(&self, reconciler: &R) {
        loop {
            let name = self.next().await;
            match reconciler.reconcile(&name).await {
                Ok(()) => self.succeeded(&name),
                Err(error) => {
                    reconciler.log_failure(&name, &error);
                    self.failed(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::time::Duration;

    /// Fails for each name the first time.
    #[derive(Default)]
    struct SecondTime(Mutex<Vec<String>>);

    impl Reconciler for SecondTime {
        type Error = ();

        fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ()>> {
            let mut lines = self.0.lock();
            let is_first = !lines.iter().any(|line| line == name);
            lines.push(name.to_owned());
            Box::pin(async move { if is_first { Err(()) } else { Ok(()) } })
        }

        fn log_failure(&self, name: &str, (): &()) {
            self.0.lock().push(format!("{name} failed"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_name_is_processed_again() {
        let (queue, reconciler) = (WorkQueue::default(), SecondTime::default());
        for name in ["a", "b"] {
            queue.add(name.to_owned());
        }
        let processed = tokio::time::timeout(Duration::from_secs(60), queue.process(&reconciler)).await;
        assert!(processed.is_err(), "it never ends by itself");
        assert_eq!(*reconciler.0.lock(), ["a", "a failed", "b", "b failed", "a", "b"]);
    }
}
