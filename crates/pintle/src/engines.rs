//! The engines of a server: the default one, and those of overridden resources. Each is compacted, health-checked,
//! measured and closed separately.

use crate::{
    Options,
    egress::Egress,
    engine::{self, EngineMetrics},
    run_error::RunError,
};
use pintle_apiserver::{
    health::{CheckScope, Health},
    metrics::StorageSizes,
    registry::Engine,
    serving::stopped,
};
use pintle_storage::{CompactionRound, Storage, StorageError};
use pintle_supervisor::Supervisor;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How often the size of an engine in this process is read, which is cheap.
const LOCAL_SIZE_INTERVAL: Duration = Duration::from_secs(2);

/// The minimum interval of health checks of an engine.
const HEALTH_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// All engines.
pub(crate) struct Engines {
    /// The engine of all resources without an override.
    pub(crate) default: Engine,
    /// The engines of [`crate::EtcdServersOverrides`], one per list of servers.
    pub(crate) overridden: Vec<Engine>,
}

impl Engines {
    /// Opens the engines.
    pub(crate) async fn open(
        options: &Options,
        egress: &Egress,
        metrics: &Arc<EngineMetrics>,
    ) -> Result<Engines, RunError> {
        let default = engine::open(options, egress, metrics).await?;
        let mut overridden = Vec::new();
        for servers in options.etcd_servers_overrides.server_lists() {
            overridden.push(engine::open_etcd(options.etcd_cluster(servers), egress, metrics).await?);
        }
        Ok(Engines { default, overridden })
    }

    /// All engines, the default one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Engine> {
        std::iter::once(&self.default).chain(&self.overridden)
    }

    /// Adds two health checks per engine, which pass while the engine can serve.
    pub(crate) fn watch_health(
        &self,
        checks: &Health,
        options: &Options,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) {
        for (at, engine) in self.all().enumerate() {
            let [health, readiness] = match at.checked_sub(1) {
                None => ["etcd".to_owned(), "etcd-readiness".to_owned()],
                Some(at) => [format!("etcd-override-{at}"), format!("etcd-override-readiness-{at}")],
            };
            let named = [
                ("etcd", health, CheckScope::Always, options.etcd_healthcheck_timeout),
                ("etcd-readiness", readiness, CheckScope::ReadyOnly, options.etcd_readycheck_timeout),
            ];
            for (group, name, scope, patience) in named {
                let (failure, failed) = watch::channel(None::<String>);
                let watched = watch_health(engine.storage.clone(), patience, failure, stopping.clone());
                supervisor.spawn(name.as_str(), watched);
                let check = move || match &*failed.borrow() {
                    None => Ok(()),
                    Some(why) => Err(why.clone()),
                };
                checks.add_to_group(group, &name, scope, Arc::new(check));
            }
        }
    }

    /// Reads the sizes of the engines periodically, for the metrics.
    pub(crate) fn watch_sizes(
        &self,
        sizes: &Arc<StorageSizes>,
        options: &Options,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) {
        for (at, engine) in self.all().enumerate() {
            // An exclusive engine is in this process.
            let interval = match engine.exclusive {
                true => LOCAL_SIZE_INTERVAL,
                false => options.etcd_db_metric_poll_interval,
            };
            if !interval.is_zero() {
                let sizes = sizes.clone();
                let watched = watch_size(at, engine.storage.clone(), sizes, interval, stopping.clone());
                supervisor.spawn("storage-size", watched);
            }
        }
    }

    /// Starts periodic compaction of history older than the interval; zero disables it.
    pub(crate) fn compact(
        &self,
        interval: Duration,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        match interval.is_zero() {
            true => Vec::new(),
            false => self
                .all()
                .map(|engine| {
                    let (storage, stopping) = (engine.storage.clone(), stopping.clone());
                    let make = move || compact(storage.clone(), interval, stopping.clone());
                    supervisor.spawn_restarting("storage-compaction", make)
                })
                .collect(),
        }
    }

    /// Closes all engines.
    ///
    /// # Errors
    /// The first failure; the other engines are closed all the same.
    pub(crate) async fn close(&self) -> Result<(), StorageError> {
        let mut result = Ok(());
        for engine in self.all() {
            result = result.and(engine.storage.close().await);
        }
        result
    }
}

async fn watch_health(
    storage: Arc<dyn Storage>,
    patience: Duration,
    failure: watch::Sender<Option<String>>,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        let health = match timeout(patience, storage.health()).await {
            Ok(health) => health.err().map(|error| error.to_string()),
            Err(_) => Some("error getting data from etcd: context deadline exceeded".to_owned()),
        };
        failure.send_replace(health);
        tokio::select! {
            () = sleep((patience / 2).max(HEALTH_INTERVAL_MIN)) => {}
            () = stopped(&mut stopping) => return,
        }
    }
}

async fn watch_size(
    at: usize,
    storage: Arc<dyn Storage>,
    sizes: Arc<StorageSizes>,
    interval: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        if let Ok(size) = storage.size().await {
            sizes.set(at, size);
        }
        tokio::select! {
            () = sleep(interval) => {}
            () = stopped(&mut stopping) => return,
        }
    }
}

/// Compacts history older than the interval, once per interval.
async fn compact(storage: Arc<dyn Storage>, interval: Duration, mut stopping: watch::Receiver<bool>) {
    let mut round = CompactionRound::default();
    loop {
        tokio::select! {
            () = sleep(interval) => {}
            () = stopped(&mut stopping) => return,
        }
        match storage.compact_periodically(round).await {
            Ok(next) => round = next,
            Err(error) => tracing::error!(%error, "compaction failed"),
        }
    }
}
