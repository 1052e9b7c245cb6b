//! Encryption at rest of a server: the active configuration, and its reload after changes.
//!
//! The active rules are behind an atomic pointer, so transformations never wait for a change. A transformation that
//! is in progress during a change continues with the rules it began with, and with their connections to KMS plugins.

use crate::{
    config::{self, EncryptionConfigError},
    identity,
    metrics::{EncryptionMetrics, Scope},
    rules::{RuleNames, Rules},
};
use arc_swap::ArcSwap;
use bytes::Bytes;
use pintle_config_metrics::content_hash;
use pintle_machinery::GroupResource;
use pintle_storage::{BoxFuture, Key, TransformError, Transformed, ValueTransformer};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::Instant};

/// The least time that the KMS plugins of a changed configuration have to become healthy.
const MIN_HEALTH_WAIT: Duration = Duration::from_secs(10);
const HEALTH_RETRY: Duration = Duration::from_millis(100);
/// The delay before the file is read again after the first failure; each failure doubles it, up to the poll interval.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The options of encryption at rest.
#[derive(Debug, Clone)]
pub struct EncryptionOptions {
    /// The configuration file.
    pub path: PathBuf,
    /// Whether the file is read again when it changes.
    pub automatic_reload: bool,
    /// The interval at which the file is checked for changes; one minute in kube-apiserver.
    pub poll_interval: Duration,
}

/// The active configuration.
pub struct Encryption {
    options: EncryptionOptions,
    metrics: Arc<EncryptionMetrics>,
    in_force: ArcSwap<InForce>,
}

/// Rules, and the tasks that probe their KMS plugins; dropping this aborts the tasks.
struct InForce {
    rules: Rules,
    _probing: JoinSet<()>,
}

impl Encryption {
    /// Reads the configuration and checks its KMS plugins, once. An unhealthy plugin is not an error: it may start
    /// after the server.
    ///
    /// # Errors
    /// When the file cannot be read or is not a valid configuration.
    pub async fn load(
        options: EncryptionOptions,
        metrics: Arc<EncryptionMetrics>,
    ) -> Result<Arc<Encryption>, EncryptionConfigError> {
        let rules = read(&options, &metrics)?;
        // The log and the health checks report the outcome.
        let _ = check(&rules).await;
        metrics.config().in_force(&rules.hash);
        let in_force = ArcSwap::from_pointee(InForce::new(rules));
        Ok(Arc::new(Encryption { options, metrics, in_force }))
    }

    /// Reads the configuration, without a call to its KMS plugins. Must be called on a runtime.
    ///
    /// # Errors
    /// When the file cannot be read or is not a valid configuration.
    pub fn verify(
        options: &EncryptionOptions,
        metrics: &Arc<EncryptionMetrics>,
    ) -> Result<(), EncryptionConfigError> {
        read(options, metrics).map(drop)
    }

    /// The transformer for the values of a resource, which follows changes of the configuration.
    pub fn transformer(self: &Arc<Self>, resource: &GroupResource) -> Arc<dyn ValueTransformer> {
        Arc::new(ResourceTransformer {
            encryption: self.clone(),
            names: RuleNames::of(resource),
            resource: resource.to_string(),
        })
    }

    /// Whether there is a health check, [`Encryption::health`]: when there are KMS plugins, or a reload may add some.
    pub fn has_health_check(&self) -> bool {
        self.options.automatic_reload || !self.in_force.load().rules.probes.is_empty()
    }

    /// The result of the last check of the KMS plugins. Never waits.
    ///
    /// # Errors
    /// When a plugin was unhealthy, with the reasons.
    pub fn health(&self) -> Result<(), String> {
        let in_force = self.in_force.load();
        let probes = in_force.rules.probes.iter().enumerate();
        all_well(probes.map(|(position, probe)| (position, probe.health())))
    }

    /// Polls the file and activates changed configurations, for ever while reloading is on; returns at once while it
    /// is off. Dropping the future ends it.
    pub async fn run(self: Arc<Self>) {
        if !self.options.automatic_reload {
            return;
        }
        let mut retry = FIRST_RETRY;
        let mut wait = self.options.poll_interval;
        loop {
            tokio::time::sleep(wait).await;
            match self.reload().await {
                Ok(changed) => {
                    if changed {
                        let hash = self.in_force.load().rules.hash.clone();
                        self.metrics.config().reloaded(Some(&hash));
                        tracing::info!(path = %self.options.path.display(), hash, "new encryption configuration in force");
                    }
                    retry = FIRST_RETRY;
                    wait = self.options.poll_interval;
                }
                Err(error) => {
                    self.metrics.config().reloaded(None);
                    tracing::error!(%error, "the encryption configuration stays as it was");
                    wait = retry.min(self.options.poll_interval);
                    retry = (retry * 2).min(self.options.poll_interval);
                }
            }
        }
    }

    /// Activates the file's configuration if it has changed, is valid, and its KMS plugins are healthy. Returns
    /// whether it was activated.
    async fn reload(&self) -> Result<bool, EncryptionConfigError> {
        let bytes = config::read_file(&self.options.path)?;
        let hash = content_hash(&bytes);
        drop(bytes);
        if hash == self.in_force.load().rules.hash {
            return Ok(false);
        }
        let rules = read(&self.options, &self.metrics)?;
        let deadline = Instant::now() + MIN_HEALTH_WAIT.max(2 * rules.kms_timeouts);
        while let Err(reason) = check(&rules).await {
            if Instant::now() >= deadline {
                let path = self.options.path.clone();
                return Err(EncryptionConfigError::Unhealthy { path, reason });
            }
            tokio::time::sleep(HEALTH_RETRY).await;
        }
        self.in_force.store(Arc::new(InForce::new(rules)));
        Ok(true)
    }
}

impl InForce {
    fn new(rules: Rules) -> InForce {
        let mut probing = JoinSet::new();
        for probe in &rules.probes {
            probing.spawn(probe.clone().run());
        }
        InForce { rules, _probing: probing }
    }
}

fn read(
    options: &EncryptionOptions,
    metrics: &Arc<EncryptionMetrics>,
) -> Result<Rules, EncryptionConfigError> {
    let config = config::read(&options.path, options.automatic_reload)?;
    let rules = Rules::new(config, metrics);
    rules.map_err(|failure| EncryptionConfigError::Build {
        path: options.path.clone(),
        reason: failure.to_string(),
    })
}

/// Checks all KMS plugins.
async fn check(rules: &Rules) -> Result<(), String> {
    let mut outcomes = Vec::with_capacity(rules.probes.len());
    for (position, probe) in rules.probes.iter().enumerate() {
        outcomes.push((position, probe.check().await));
    }
    all_well(outcomes)
}

/// Combines the results of the KMS plugins; each failure has the name of the plugin's check.
fn all_well(outcomes: impl IntoIterator<Item = (usize, Result<(), String>)>) -> Result<(), String> {
    let failures = outcomes.into_iter().filter_map(|(position, outcome)| {
        outcome.err().map(|error| format!("kms-provider-{position}: {error}"))
    });
    let failures: Vec<String> = failures.collect();
    match failures.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// The transformer for the values of one resource.
struct ResourceTransformer {
    encryption: Arc<Encryption>,
    names: RuleNames,
    resource: String,
}

impl ResourceTransformer {
    fn has_rule(&self) -> bool {
        self.encryption.in_force.load().rules.providers(&self.names).is_some()
    }

    fn scope(&self) -> Scope<'_> {
        Scope { resource: &self.resource, metrics: &self.encryption.metrics }
    }
}

impl ValueTransformer for ResourceTransformer {
    fn to_storage<'a>(&'a self, key: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>> {
        let in_force = self.encryption.in_force.load();
        let sealed = match in_force.rules.providers(&self.names) {
            Some(providers) => providers.seal(self.scope(), key, value).map_err(TransformError::from),
            None => Ok(value),
        };
        // Encryption never waits: it makes no call, even with a KMS plugin.
        Box::pin(std::future::ready(sealed))
    }

    fn from_storage<'a>(
        &'a self,
        key: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        Box::pin(async move {
            let in_force = self.encryption.in_force.load_full();
            let Some(providers) = in_force.rules.providers(&self.names) else {
                return Ok(Transformed { value: identity::open(&stored)?.into(), stale: false });
            };
            let opened = providers.open(self.scope(), key, stored).await?;
            Ok(Transformed { value: opened.value.into(), stale: opened.stale })
        })
    }

    fn stores_values_as_they_are(&self) -> bool {
        // With reload, a changed configuration may add a rule for any resource.
        !self.encryption.options.automatic_reload && !self.has_rule()
    }

    fn is_plain(&self, stored: &[u8]) -> bool {
        identity::is_plain(stored) && !self.has_rule()
    }
}
