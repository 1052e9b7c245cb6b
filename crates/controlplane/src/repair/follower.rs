//! Repairs the cluster IPs of a service, and an `IPAddress` object, as soon as one of them changes.

use super::cluster_ips::{Compared, Repairs, repair_address, repair_service};
use crate::controller::log;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use pintle_cacher::{CachedObject, Cacher};
use pintle_controller::{Delta, Informer, Reconciler, WorkQueue, WorkQueueMetrics};
use pintle_machinery::Status;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// The number of services, and of addresses, that are looked at side by side.
const WORKERS: usize = 3;

/// The watch caches of the objects between which the addresses are repaired.
pub struct RepairedCaches {
    /// The cache of services.
    pub services: Arc<Cacher>,
    /// The cache of `IPAddress` objects.
    pub ip_addresses: Arc<Cacher>,
}

/// Follows services and `IPAddress` objects.
pub(super) struct Follower {
    caches: RepairedCaches,
    services: WorkQueue,
    addresses: WorkQueue,
}

impl Follower {
    /// Creates the follower, not yet running, with measured queues.
    pub(super) fn new(caches: RepairedCaches, metrics: &WorkQueueMetrics) -> Follower {
        let follower = Follower { caches, services: WorkQueue::default(), addresses: WorkQueue::default() };
        metrics.measure("services", &follower.services);
        metrics.measure("ipaddresses", &follower.addresses);
        follower
    }

    /// Repairs objects once more, whether they change or not.
    pub(super) fn look_again(&self, compared: &Compared) {
        compared.services.iter().for_each(|name| self.services.add(name.clone()));
        compared.addresses.iter().for_each(|name| self.addresses.add(name.clone()));
    }

    /// Repairs everything once, and then all that changes; never returns. When it is dropped, a repair may be unfinished.
    pub(super) async fn run(&self, repairs: Repairs<'_>) {
        // Dropped with this future.
        let (_running, stopping) = watch::channel(false);
        let services = Services(repairs);
        let addresses = Addresses { repairs, queue: &self.addresses };
        tokio::join!(
            follow(&self.caches.services, &self.services, stopping.clone()),
            follow(&self.caches.ip_addresses, &self.addresses, stopping),
            self.services.process(&services),
            self.addresses.process(&addresses),
        );
    }
}

async fn follow(cacher: &Arc<Cacher>, queue: &WorkQueue, stopping: watch::Receiver<bool>) {
    let add = |object: &Arc<CachedObject>| queue.add(format!("{}/{}", object.namespace(), object.name()));
    let informer = Informer::new(cacher);
    let queueing = informer.run(stopping, |deltas| {
        deltas.for_each(|delta| match delta {
            Delta::Set(object) => add(object),
            // A service that is gone holds nothing, and its addresses are released by its delete.
            Delta::Removed(_) | Delta::Listed(_) => {}
        });
    });
    queueing.await;
}

struct Services<'a>(Repairs<'a>);

impl Reconciler for Services<'_> {
    type Error = Status;

    fn workers(&self) -> usize {
        WORKERS
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        let (namespace, name) = name.split_once('/').unwrap_or_default();
        Box::pin(repair_service(self.0, namespace, name, Timestamp::now()))
    }

    fn log_failure(&self, _name: &str, status: &Status) {
        log("cluster IP repair", Err(status.clone()));
    }
}

struct Addresses<'a> {
    repairs: Repairs<'a>,
    queue: &'a WorkQueue,
}

impl Reconciler for Addresses<'_> {
    type Error = Status;

    fn workers(&self) -> usize {
        WORKERS
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let address = name.trim_start_matches('/');
            let due = repair_address(self.repairs, address, Timestamp::now()).await?;
            if let Some(due) = due {
                // Whole seconds are compared, as creation timestamps have them.
                let delay = Duration::try_from(due).unwrap_or_default() + Duration::from_secs(1);
                self.queue.add_after(name.to_owned(), delay);
            }
            Ok(())
        })
    }

    fn log_failure(&self, _name: &str, status: &Status) {
        log("cluster IP repair", Err(status.clone()));
    }
}
