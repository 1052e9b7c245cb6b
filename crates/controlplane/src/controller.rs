//! The controllers of the server's own objects: each creates its objects when the server starts and reconciles them at
//! intervals, because clients may change or delete them.
//!
//! Controllers use the server's own [`Registry`], so that the same strategies apply as for clients' writes, and are safe
//! in several servers of one store: each write is a create or a compare-and-swap towards the same state.

use crate::objects::unless_off;
use pintle_machinery::Status;
use pintle_registry::Registry;
use std::{future::Future, time::Duration};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// The interval between reconciliations of objects that clients may delete.
pub(crate) const OBJECTS_INTERVAL: Duration = Duration::from_secs(60);
/// The time limit for withdrawing from other servers at shutdown; they notice the absence anyway, when leases expire.
const WITHDRAWAL_PATIENCE: Duration = Duration::from_secs(20);

/// A controller of some of the server's own objects. It is started by [`start`] and then run by [`run`].
pub trait Controller: Send + Sync + 'static {
    /// The name in logs.
    const NAME: &'static str;
    /// The interval between reconciliations.
    const INTERVAL: Duration;

    /// Reconciles the objects when the server starts. The server becomes ready afterwards.
    fn bootstrap(&self, registry: &dyn Registry) -> impl Future<Output = Result<(), Status>> + Send {
        self.reconcile(registry)
    }

    /// Reconciles the objects. Unchanged objects are read and not written.
    fn reconcile(&self, registry: &dyn Registry) -> impl Future<Output = Result<(), Status>> + Send;

    /// Reacts to events between reconciliations; never returns.
    fn follow(&self, _registry: &dyn Registry) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Withdraws this server from other servers at shutdown. The registry still works.
    fn withdraw(&self, _registry: &dyn Registry) -> impl Future<Output = Result<(), Status>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Creates the missing objects of a controller. A disabled resource is ignored.
///
/// # Errors
/// The first failure. Objects that were created stay, and a second call creates the rest.
pub async fn start<C: Controller>(controller: &C, registry: &dyn Registry) -> Result<(), Status> {
    unless_off(controller.bootstrap(registry)).await
}

/// Runs a controller until `shutdown` completes, and then withdraws it. A failure is logged and retried at the next
/// interval.
pub async fn run<C: Controller>(
    controller: &C,
    registry: &dyn Registry,
    shutdown: impl Future<Output = ()> + Send,
) {
    let reconciling = async {
        let mut ticks = interval_at(Instant::now() + C::INTERVAL, C::INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            log(C::NAME, unless_off(controller.reconcile(registry)).await);
        }
    };
    tokio::select! {
        () = reconciling => {}
        () = controller.follow(registry) => {}
        () = shutdown => {}
    }
    match timeout(WITHDRAWAL_PATIENCE, controller.withdraw(registry)).await {
        Ok(result) => log(C::NAME, result),
        Err(_) => tracing::warn!("the other servers could not be told in time that this one ends"),
    }
}

/// Logs a failure.
pub(crate) fn log(name: &str, result: Result<(), Status>) {
    if let Err(status) = result {
        tracing::warn!(controller = name, error = %status, "reconciliation failed, it is tried again later");
    }
}
