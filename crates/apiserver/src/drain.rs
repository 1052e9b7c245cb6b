//! The requests in flight at shutdown: how many there are, and whether further ones are refused.
//!
//! A server behind a load balancer keeps its port open until its requests have ended, and tells clients to ask another
//! server (`--shutdown-send-retry-after`): otherwise a client whose connection is closed may repeat its request on a
//! server that cannot be reached any more.

use tokio::sync::watch;

/// The requests in flight that are not long-running, and the signal that further ones are refused.
#[derive(Debug, Default)]
pub struct Drain {
    in_flight: watch::Sender<usize>,
    refusing: watch::Sender<bool>,
}

impl Drain {
    /// Refuses all further requests except those of health checks.
    pub fn refuse(&self) {
        self.refusing.send_replace(true);
    }

    /// Whether requests are refused.
    pub(crate) fn is_refusing(&self) -> bool {
        *self.refusing.borrow()
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(&self) -> impl Drop + Send + use<> {
        struct Guard(watch::Sender<usize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.send_modify(|count| *count = count.saturating_sub(1));
            }
        }
        self.in_flight.send_modify(|count| *count = count.saturating_add(1));
        Guard(self.in_flight.clone())
    }

    /// Waits until no request is in flight.
    pub async fn idle(&self) {
        // The sender lives in `self`, so that waiting does not fail.
        drop(self.in_flight.subscribe().wait_for(|count| *count == 0).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_drain_is_idle_when_its_requests_have_ended() {
        let drain = Drain::default();
        drain.idle().await;
        let (first, second) = (drain.begin(), drain.begin());
        drop(first);
        assert!(drain.idle().now_or_never().is_none());
        drop(second);
        drain.idle().await;
    }
}
