//! Runs the controllers that reconcile the server's objects.

use crate::objects::unless_off;
use crate::repair::{self, NodePortRepair};
use crate::{
    Config, cluster_authentication, flow_control, identity_lease, kubernetes_service, legacy_token_tracking,
    priority_classes, service_cidr, system_namespaces,
};
use jiff::Timestamp;
use pintle_machinery::Status;
use pintle_registry::Registry;
use std::{future::Future, time::Duration};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// The interval between reconciliations of the endpoints of the `kubernetes` service: clients in the cluster depend on
/// them.
const ENDPOINTS_INTERVAL: Duration = Duration::from_secs(10);
/// The time limit for withdrawing from other servers at shutdown; they notice the absence anyway, when leases expire.
const WITHDRAWAL_PATIENCE: Duration = Duration::from_secs(20);
/// The interval between reconciliations of objects that clients may delete.
const OBJECTS_INTERVAL: Duration = Duration::from_secs(60);
/// The interval between searches for leaked addresses and ports; each search lists all services.
const REPAIR_INTERVAL: Duration = Duration::from_secs(180);
/// The interval between renewals of the identity lease, a fraction of its duration; each renewal is a write.
const IDENTITY_INTERVAL: Duration = Duration::from_secs(600);

/// Reconciles the objects of [`crate::bootstrap()`] until `shutdown` completes. A failure is logged and retried at the
/// next interval; unchanged objects are read and not written. Afterwards withdraws this server's leases and endpoints,
/// for which the registry must still work.
pub async fn run(registry: &dyn Registry, config: &Config, shutdown: impl Future<Output = ()>) {
    let loops = async {
        tokio::join!(
            every(ENDPOINTS_INTERVAL, "kubernetes service", || kubernetes_service::reconcile(
                registry, config
            )),
            every(OBJECTS_INTERVAL, "system objects", || system_objects(registry, config)),
            every(IDENTITY_INTERVAL, "identity lease", || async {
                identity_lease::renew(registry, config, Timestamp::now()).await?;
                identity_lease::collect_expired(registry, Timestamp::now()).await
            }),
            repair_loop(registry, config),
            cluster_authentication::follow(registry, config),
        )
    };
    tokio::select! {
        _ = loops => {}
        () = shutdown => {}
    }
    let farewell = async {
        log("kubernetes service", kubernetes_service::withdraw(registry, config).await);
        log("identity lease", identity_lease::remove(registry, config).await);
    };
    if timeout(WITHDRAWAL_PATIENCE, farewell).await.is_err() {
        tracing::warn!("the other servers could not be told in time that this one ends");
    }
}

async fn system_objects(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let now = Timestamp::now();
    unless_off(system_namespaces::reconcile(registry)).await?;
    unless_off(service_cidr::reconcile(registry, config, now)).await?;
    unless_off(priority_classes::reconcile(registry)).await?;
    unless_off(flow_control::reconcile(registry)).await?;
    unless_off(legacy_token_tracking::reconcile(registry, now)).await?;
    cluster_authentication::reconcile(registry, config, now).await
}

async fn repair_loop(registry: &dyn Registry, config: &Config) {
    let mut node_ports = NodePortRepair::default();
    let mut ticks = ticks(REPAIR_INTERVAL);
    loop {
        ticks.tick().await;
        log("cluster IP repair", unless_off(repair::cluster_ips(registry, Timestamp::now())).await);
        let range = config.service_network.node_ports();
        log("node port repair", unless_off(node_ports.run_once(registry, range)).await);
    }
}

async fn every<F: Future<Output = Result<(), Status>>>(
    interval: Duration,
    name: &str,
    mut reconcile: impl FnMut() -> F,
) {
    let mut ticks = ticks(interval);
    loop {
        ticks.tick().await;
        log(name, unless_off(reconcile()).await);
    }
}

fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn log(name: &str, result: Result<(), Status>) {
    if let Err(status) = result {
        tracing::warn!(controller = name, error = %status, "reconciliation failed, it is tried again later");
    }
}
