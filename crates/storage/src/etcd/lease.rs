//! Leases, which delete keys at their expiry.
//!
//! A lease for every key would cost etcd more than the keys. So keys that are written within a short time of each
//! other with the same time to live share a lease, whose time to live is a little longer than the first key needs.

use super::{
    client::{CallError, CallKind, Client, WRITE_PATIENCE},
    proto::{LeaseGrantRequest, LeaseGrantResponse, path},
};
use crate::StorageError;
use std::time::Duration;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// The largest number of keys of a lease: etcd deletes them all in one transaction.
const MAX_OBJECTS: u64 = 1000;
/// The longest lease that etcd accepts, in seconds: 285 years.
const MAX_TTL_SECONDS: u64 = 9_000_000_000;
/// The part of the time to live, in percent, for which a lease is reused.
const REUSE_PERCENT: u64 = 5;

/// Grants leases, one at a time.
#[derive(Default)]
pub(super) struct Leases {
    last: Mutex<Option<Lease>>,
}

struct Lease {
    id: i64,
    expires: Instant,
    objects: u64,
}

impl Leases {
    /// The lease for a key that is about to be written. It takes no longer than the write itself may, though one grant waits for
    /// another: requests that nobody waits for would pile up while etcd is away.
    pub(super) async fn lease(&self, client: &Client, ttl: Duration) -> Result<i64, StorageError> {
        let lease = timeout(WRITE_PATIENCE, self.granted(client, ttl)).await;
        lease.unwrap_or_else(|_| Err(StorageError::Engine("etcd: the request timed out".to_owned())))
    }

    async fn granted(&self, client: &Client, ttl: Duration) -> Result<i64, StorageError> {
        let seconds = ttl_seconds(ttl);
        let reuse = reuse_seconds(seconds, client.options().lease_reuse);
        let mut last = self.last.lock().await;
        let now = Instant::now();
        if let Some(lease) = last.as_mut().filter(|lease| lease.fits(now, seconds, reuse)) {
            lease.objects += 1;
            return Ok(lease.id);
        }
        let request = LeaseGrantRequest { ttl: i64::try_from(seconds + reuse).unwrap_or(i64::MAX) };
        // A lease whose grant was lost holds no key and expires, so the call may be retried.
        let granted: LeaseGrantResponse =
            client.call(CallKind::Read, path::LEASE_GRANT, request).await.map_err(CallError::into_storage)?;
        if !granted.error.is_empty() {
            return Err(StorageError::Engine(granted.error));
        }
        let expires = now.checked_add(Duration::from_secs(seconds + reuse)).unwrap_or(now);
        let full = last.replace(Lease { id: granted.id, expires, objects: 1 });
        if let (Some(full), Some(observer)) = (full, &client.options().observer) {
            observer.lease(full.objects);
        }
        Ok(granted.id)
    }

    /// Stops reusing a lease that etcd does not know.
    pub(super) async fn forget(&self, id: i64) {
        let mut last = self.last.lock().await;
        if last.as_ref().is_some_and(|lease| lease.id == id) {
            *last = None;
        }
    }
}

impl Lease {
    /// Whether a key with this time to live gets at least that, and not much more.
    fn fits(&self, now: Instant, seconds: u64, reuse: u64) -> bool {
        let left = self.expires.saturating_duration_since(now);
        let least = Duration::from_secs(seconds);
        let most = Duration::from_secs(seconds + reuse);
        left > least && left < most && self.objects < MAX_OBJECTS
    }
}

/// etcd counts seconds; fractions are rounded up, so that no key expires early.
fn ttl_seconds(ttl: Duration) -> u64 {
    let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    seconds.clamp(1, MAX_TTL_SECONDS)
}

fn reuse_seconds(seconds: u64, longest: Duration) -> u64 {
    (seconds * REUSE_PERCENT / 100).min(longest.as_secs()).min(MAX_TTL_SECONDS - seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::{EtcdConnection, EtcdDialer, EtcdOptions};
    use std::sync::Arc;

    /// No member can be reached.
    struct Nowhere;

    impl EtcdDialer for Nowhere {
        fn dial<'a>(
            &'a self,
            _: &'a str,
        ) -> futures_util::future::BoxFuture<'a, Result<Box<dyn EtcdConnection>, String>> {
            Box::pin(async { Err("no way".to_owned()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn grants_that_wait_for_each_other_end_together() {
        let mut options = EtcdOptions::new(["http://127.0.0.1:1"], "/registry/");
        options.dialer = Some(Arc::new(Nowhere));
        let client = Client::new(options).unwrap();
        let (leases, begun) = (Leases::default(), Instant::now());
        let grants = (0..10).map(|_| leases.lease(&client, Duration::from_secs(3600)));
        let granted = futures_util::future::join_all(grants).await;
        assert!(granted.iter().all(Result::is_err));
        assert!(begun.elapsed() <= WRITE_PATIENCE + Duration::from_millis(1), "{:?}", begun.elapsed());
    }

    #[test]
    fn times_are_whole_seconds_that_etcd_takes() {
        let rows = [
            (Duration::ZERO, 1),
            (Duration::from_millis(200), 1),
            (Duration::from_millis(1001), 2),
            (Duration::from_secs(3600), 3600),
            (Duration::MAX, MAX_TTL_SECONDS),
        ];
        for (ttl, seconds) in rows {
            assert_eq!(ttl_seconds(ttl), seconds, "{ttl:?}");
        }
    }

    #[test]
    fn a_lease_is_used_again_for_a_little_while() {
        // (time to live, longest reuse, expected), in seconds
        for (seconds, longest, expected) in [(3600, 60, 60), (600, 60, 30), (10, 60, 0), (3600, 0, 0)] {
            assert_eq!(reuse_seconds(seconds, Duration::from_secs(longest)), expected);
        }
        assert_eq!(reuse_seconds(MAX_TTL_SECONDS, Duration::from_secs(60)), 0);

        let granted = Instant::now();
        let lease = Lease { id: 1, expires: granted + Duration::from_secs(3660), objects: 1 };
        // (seconds since the grant, a key's time to live, whether it fits)
        let rows = [
            (0, 3600, false),
            (1, 3600, true),
            (59, 3600, true),
            (60, 3600, false),
            (1, 1800, false),
            (1, 7200, false),
        ];
        for (after, seconds, fits) in rows {
            let reuse = reuse_seconds(seconds, Duration::from_secs(60));
            let now = granted + Duration::from_secs(after);
            assert_eq!(lease.fits(now, seconds, reuse), fits, "{after} s later, for {seconds} s");
        }
        let full = Lease { objects: MAX_OBJECTS, ..lease };
        assert!(!full.fits(granted + Duration::from_secs(1), 3600, 60));
    }
}
