//! The engines of a server: the one that most resources are stored in, and those of overridden resources. Each is compacted,
//! asked for its health and its size, and closed for itself.

use crate::{Options, chain::Chain};
use pintle_apiserver::{health::CheckScope, metrics::StorageSizes, registry::Engine, serving::stopped};
use pintle_storage::{Revision, Storage, StorageError};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};

/// How often an engine is asked for its health.
const HEALTH_INTERVAL: Duration = Duration::from_secs(2);

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
            let (failure, failed) = watch::channel(None::<String>);
            tokio::spawn(watch_health(storage.clone(), failure, stopping.clone()));
            let check = Arc::new(move || match &*failed.borrow() {
                None => Ok(()),
                Some(why) => Err(why.clone()),
            });
            match at.checked_sub(1) {
                None => chain.health.add("etcd", CheckScope::Always, check),
                Some(at) => {
                    chain.health.add(&format!("etcd-override-{at}"), CheckScope::Always, check.clone());
                    let name = format!("etcd-override-readiness-{at}");
                    chain.health.add(&name, CheckScope::ReadyOnly, check);
                }
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
    failure: watch::Sender<Option<String>>,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        failure.send_replace(storage.health().await.err().map(|error| error.to_string()));
        tokio::select! {
            () = tokio::time::sleep(HEALTH_INTERVAL) => {}
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
            () = tokio::time::sleep(interval) => {}
            () = stopped(&mut stopping) => return,
        }
    }
}

/// Forgets what is older than the interval, once an interval: a revision is compacted an interval after it was noted as the
/// newest.
async fn compact(storage: Arc<dyn Storage>, interval: Duration, mut stopping: watch::Receiver<bool>) {
    let mut before: Option<Revision> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stopped(&mut stopping) => return,
        }
        if let Some(revision) = before
            && let Err(error) = storage.compact(revision).await
        {
            tracing::error!(%error, "compaction failed");
        }
        match storage.current_revision().await {
            Ok(revision) => before = Some(revision),
            Err(error) => tracing::error!(%error, "the store does not tell its revision"),
        }
    }
}
