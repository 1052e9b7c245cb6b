//! Encryption at rest: loads the configuration file, provides the stores' transformers, the health check and the
//! metrics.

use crate::{Options, run_error::RunError};
use pintle_apiserver::{
    health::{CheckScope, Health},
    registry::ResourceTransformers,
    serving::stopped,
};
use pintle_encryption::{Encryption, EncryptionMetrics, EncryptionOptions, identity};
use pintle_machinery::GroupResource;
use pintle_storage::ValueTransformer;
use pintle_supervisor::Supervisor;
use prometheus::core::Collector;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

/// The name of the health check; one check covers all KMS providers.
const HEALTH_CHECK: &str = "kms-providers";

/// How long, and how often, the start is retried while a KMS provider is unhealthy.
const START_PATIENCE: Duration = Duration::from_secs(90);
const START_RETRY: Duration = Duration::from_millis(500);
/// How long objects may stay unreadable after the providers have recovered.
const SETTLING: Duration = Duration::from_secs(40);

/// The encryption at rest of the process, configured or not.
pub(crate) struct EncryptionAtRest {
    encryption: Option<Arc<Encryption>>,
    metrics: Arc<EncryptionMetrics>,
}

impl EncryptionAtRest {
    /// Loads the configuration, if there is one.
    pub(crate) async fn load(options: &Options) -> Result<EncryptionAtRest, RunError> {
        let metrics = EncryptionMetrics::new(&options.identity());
        let metrics = Arc::new(metrics?);
        let encryption = match encryption_options(options) {
            None => None,
            Some(options) => Some(Encryption::load(options, metrics.clone()).await?),
        };
        Ok(EncryptionAtRest { encryption, metrics })
    }

    /// Checks the configuration, if there is one, without a call to its KMS plugins.
    pub(crate) fn check(options: &Options) -> Result<(), RunError> {
        let Some(options) = encryption_options(options) else { return Ok(()) };
        let metrics = EncryptionMetrics::new("");
        let metrics = Arc::new(metrics?);
        Ok(Encryption::verify(&options, &metrics)?)
    }

    /// The transformers of each resource's values.
    pub(crate) fn resources(&self) -> Arc<dyn ResourceTransformers> {
        Arc::new(Resources(self.encryption.clone()))
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }

    /// Adds the health check if there is one.
    pub(crate) fn add_health_check(&self, health: &Health) {
        if let Some(encryption) = self.encryption.clone().filter(|encryption| encryption.has_health_check()) {
            health.add(HEALTH_CHECK, CheckScope::NotLive, Arc::new(move || encryption.health()));
        }
    }

    /// Runs the part of the start that reads and writes objects. It is retried while a KMS provider is unhealthy, which
    /// may start together with the server, and for some time afterwards, until all objects can be read.
    pub(crate) async fn once_usable<T, F>(&self, start: impl Fn() -> F) -> Result<T, RunError>
    where
        F: Future<Output = Result<T, RunError>>,
    {
        let unwell = || self.encryption.as_ref().and_then(|encryption| encryption.health().err());
        let mut reason = None;
        let mut unwell_at: Option<Instant> = None;
        let mut deadline: Option<Instant> = None;
        loop {
            if let Some(why) = unwell() {
                (reason, unwell_at) = (Some(why), Some(Instant::now()));
            }
            let error = match start().await {
                Err(RunError::Bootstrap(error)) => error,
                outcome => return outcome,
            };
            // The start may have waited long for the caches before it failed.
            if let Some(why) = unwell() {
                (reason, unwell_at) = (Some(why), Some(Instant::now()));
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + START_PATIENCE);
            let was_unwell = unwell_at.is_some_and(|at| at.elapsed() < SETTLING);
            let Some(why) = reason.as_ref().filter(|_| was_unwell) else {
                return Err(RunError::Bootstrap(error));
            };
            if Instant::now() >= deadline {
                return Err(RunError::KeyService { why: why.clone(), error });
            }
            tracing::warn!(error = error.message, why, "waiting for the key services");
            tokio::time::sleep(START_RETRY).await;
        }
    }

    /// Reloads the configuration until the server stops.
    pub(crate) fn watch_config(
        &self,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Option<JoinHandle<()>> {
        let encryption = self.encryption.clone()?;
        let stopping = stopping.clone();
        Some(supervisor.spawn_restarting("encryption-config", move || {
            let (encryption, mut stopping) = (encryption.clone(), stopping.clone());
            async move {
                tokio::select! {
                    () = encryption.run() => {}
                    () = stopped(&mut stopping) => {}
                }
            }
        }))
    }
}

/// The transformers of a configuration. Without a configuration values are stored in the clear; encrypted values in the
/// store are reported as such, not as damaged.
struct Resources(Option<Arc<Encryption>>);

impl ResourceTransformers for Resources {
    fn transformer_for(&self, resource: &GroupResource) -> Option<Arc<dyn ValueTransformer>> {
        Some(match &self.0 {
            Some(encryption) => encryption.transformer(resource),
            None => identity(),
        })
    }
}

/// The options of the encryption; `None` without a configuration.
fn encryption_options(options: &Options) -> Option<EncryptionOptions> {
    options.encryption_provider_config.clone().map(|path| EncryptionOptions {
        path,
        automatic_reload: options.encryption_provider_config_automatic_reload,
        poll_interval: options.encryption_provider_config_poll_interval,
    })
}
