//! The engines of a server: the one that most resources are stored in, and those of overridden resources. Each is compacted,
//! asked for its health and its size, and closed for itself.

use crate::{Options, chain::Chain};
use pintle_apiserver::{health::CheckScope, metrics::StorageSizes, registry::Engine, serving::stopped};
use pintle_storage::{CompactionRound, Storage, StorageError};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// An engine is not asked for its health more often than this.
const HEALTH_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// All engines.
pub(crate) struct Engines {
    /// What resources are stored in that have no other engine.
    pub(crate) default: Engine,
    /// The engines of [`crate::EtcdServersOverrides`], a list of servers each.
    pub(crate) overridden: Vec<Engine>,
}

impl Engines {
    fn storages(&self) -> impl Iterator<Item = &Arc<dyn Storage>> {
        std::iter::once(&self.default).chain(&self.overridden).map(|engine| &engine.storage)
    }

    /// Adds a check for each engine, and keeps what is known of its health and size.
    pub(crate) fn watch(&self, chain: &Chain, options: &Options, stopping: &watch::Receiver<bool>) {
        for (at, storage) in self.storages().enumerate() {
            let name = match at.checked_sub(1) {
                None => ["etcd".to_owned(), "etcd-readiness".to_owned()],
                Some(at) => [format!("etcd-override-{at}"), format!("etcd-override-readiness-{at}")],
            };
            let scopes = [
                (CheckScope::Always, options.etcd_healthcheck_timeout),
                (CheckScope::ReadyOnly, options.etcd_readycheck_timeout),
            ];
            for (name, (scope, patience)) in name.iter().zip(scopes) {
                let (failure, failed) = watch::channel(None::<String>);
                tokio::spawn(watch_health(storage.clone(), patience, failure, stopping.clone()));
                let check = move || match &*failed.borrow() {
                    None => Ok(()),
                    Some(why) => Err(why.clone()),
                };
                chain.health.add(name, scope, Arc::new(check));
            }
            let interval = options.etcd_db_metric_poll_interval;
            if !interval.is_zero() {
                tokio::spawn(watch_size(
                    at,
                    storage.clone(),
                    chain.storage_sizes.clone(),
                    interval,
                    stopping.clone(),
                ));
            }
        }
    }

    /// Starts to forget history that is older than the interval; zero is never.
    pub(crate) fn compact(
        &self,
        interval: Duration,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        match interval.is_zero() {
            true => Vec::new(),
            false => self
                .storages()
                .map(|storage| tokio::spawn(compact(storage.clone(), interval, stopping.clone())))
                .collect(),
        }
    }

    /// Closes all of them.
    ///
    /// # Errors
    /// The first failure; the others are closed all the same.
    pub(crate) async fn close(&self) -> Result<(), StorageError> {
        let mut result = Ok(());
        for storage in self.storages() {
            result = result.and(storage.close().await);
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

/// Forgets what is older than the interval, once an interval: a revision is compacted an interval after it was noted as the
/// newest.
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
