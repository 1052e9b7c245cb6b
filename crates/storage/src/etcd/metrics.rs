//! The observer of an etcd engine's requests.

use std::time::{Duration, Instant};

/// Observes every request to etcd, for `etcd_requests_total` and related metrics.
///
/// The crate has no metrics library and knows no resources: implementations derive the resource from the key.
pub trait EtcdObserver: Send + Sync + 'static {
    /// Called when a request has ended, or nobody awaits it any more, which is a failure. `operation` is kube-apiserver's name: `get`, `list`, `listWithCount`,
    /// `create`, `update`, `delete`. `key` is the key or, for a list and a count, the prefix.
    fn request(&self, operation: &'static str, key: &str, took: Duration, failed: bool);

    /// Called when a lease gets no more keys, with the number of its keys.
    fn lease(&self, objects: u64);
}

/// Awaits the answer to a request.
pub(super) async fn observed<T, E>(
    observer: Option<&dyn EtcdObserver>,
    operation: &'static str,
    key: &str,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut request = Observed { observer, operation, key, started: Instant::now(), failed: true };
    let answer = answer.await;
    request.failed = answer.is_err();
    answer
}

/// Tells the observer when it is dropped.
struct Observed<'a> {
    observer: Option<&'a dyn EtcdObserver>,
    operation: &'static str,
    key: &'a str,
    started: Instant,
    failed: bool,
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if let Some(observer) = self.observer {
            observer.request(self.operation, self.key, self.started.elapsed(), self.failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoxFuture;
    use futures_util::FutureExt;
    use parking_lot::Mutex;
    use std::future::{pending, ready};

    #[derive(Default)]
    struct Failures(Mutex<Vec<bool>>);

    impl EtcdObserver for Failures {
        fn request(&self, _operation: &'static str, _key: &str, _took: Duration, failed: bool) {
            self.0.lock().push(failed);
        }

        fn lease(&self, _objects: u64) {}
    }

    #[test]
    fn a_request_is_observed_however_it_ends() {
        let seen = Failures::default();
        let rows: [(BoxFuture<'_, Result<(), ()>>, bool); 3] =
            [(Box::pin(ready(Ok(()))), false), (Box::pin(ready(Err(()))), true), (Box::pin(pending()), true)];
        for (answer, failed) in rows {
            let _ended = observed(Some(&seen), "get", "/a", answer).now_or_never();
            assert_eq!(seen.0.lock().pop(), Some(failed));
        }
    }
}
