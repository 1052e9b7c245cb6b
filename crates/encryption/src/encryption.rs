//! Encryption at rest as a server has it: the configuration in force, and what reads it again when it changes.
//!
//! The rules in force stand behind an atomic pointer, so that no value waits for a change of them. A value that is being
//! transformed when they change keeps those it began with, and with them the connections to their key services.

use crate::{
    config::{self, EncryptionConfigError},
    identity,
    metrics::{EncryptionMetrics, Scope, content_hash},
    rules::{RuleNames, Rules},
};
use arc_swap::ArcSwap;
use bytes::Bytes;
use pintle_machinery::GroupResource;
use pintle_storage::{BoxFuture, Key, TransformError, Transformed, ValueTransformer};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::Instant};

/// How long key services of a new configuration have at least to become well.
const MIN_HEALTH_WAIT: Duration = Duration::from_secs(10);
const HEALTH_RETRY: Duration = Duration::from_millis(100);
/// How long after the first failure the file is read again; each failure doubles it, up to the ordinary interval.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Where the configuration is, and whether it may change.
#[derive(Debug, Clone)]
pub struct EncryptionOptions {
    /// The file.
    pub path: PathBuf,
    /// Whether it is read again when it changes.
    pub automatic_reload: bool,
    /// How often it is looked at for changes; kube-apiserver does so once a minute.
    pub poll_interval: Duration,
}

/// The configuration in force.
pub struct Encryption {
    options: EncryptionOptions,
    metrics: Arc<EncryptionMetrics>,
    in_force: ArcSwap<InForce>,
}

/// Rules with the tasks that watch their key services, which end with them.
struct InForce {
    rules: Rules,
    _probing: JoinSet<()>,
}

impl Encryption {
    /// Reads the configuration and asks its key services, once. That one of them is not well is no error: it may start
    /// after the server.
    ///
    /// # Errors
    /// When the file cannot be read or is no valid configuration.
    pub async fn load(
        options: EncryptionOptions,
        metrics: Arc<EncryptionMetrics>,
    ) -> Result<Arc<Encryption>, EncryptionConfigError> {
        let rules = read(&options, &metrics)?;
        // The outcome is told by the log and by health checks.
        let _ = check(&rules).await;
        metrics.config_in_force(&rules.hash);
        let in_force = ArcSwap::from_pointee(InForce::new(rules));
        Ok(Arc::new(Encryption { options, metrics, in_force }))
    }

    /// What encrypts and decrypts the values of a resource, now and after each change of the configuration.
    pub fn transformer(self: &Arc<Self>, resource: &GroupResource) -> Arc<dyn ValueTransformer> {
        Arc::new(ResourceTransformer {
            encryption: self.clone(),
            names: RuleNames::of(resource),
            resource: resource.to_string(),
        })
    }

    /// Whether there is a health check, [`Encryption::health`]: with a key service, or when there may be one later.
    pub fn has_health_check(&self) -> bool {
        self.options.automatic_reload || !self.in_force.load().rules.probes.is_empty()
    }

    /// How the key services were when they were last asked. Never waits.
    ///
    /// # Errors
    /// When one of them was not well, with the reasons.
    pub fn health(&self) -> Result<(), String> {
        let in_force = self.in_force.load();
        let probes = in_force.rules.probes.iter().enumerate();
        all_well(probes.map(|(position, probe)| (position, probe.health())))
    }

    /// Looks at the file again and again, if that is wanted, and puts what is new in it in force. Returns never when it
    /// is wanted; dropping it ends it.
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
                        self.metrics.reloaded(Some(&hash));
                        tracing::info!(path = %self.options.path.display(), hash, "new encryption configuration in force");
                    }
                    retry = FIRST_RETRY;
                    wait = self.options.poll_interval;
                }
                Err(error) => {
                    self.metrics.reloaded(None);
                    tracing::error!(%error, "the encryption configuration stays as it was");
                    wait = retry.min(self.options.poll_interval);
                    retry = (retry * 2).min(self.options.poll_interval);
                }
            }
        }
    }

    /// Puts the file's configuration in force if it is another one, valid, and its key services are well.
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

/// Asks all key services.
async fn check(rules: &Rules) -> Result<(), String> {
    let mut outcomes = Vec::with_capacity(rules.probes.len());
    for (position, probe) in rules.probes.iter().enumerate() {
        outcomes.push((position, probe.check().await));
    }
    all_well(outcomes)
}

/// What is wrong with the key services, each by the name that its check has.
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

/// The values of one resource.
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
        // Nothing of it waits: even a key service is not asked to write.
        Box::pin(std::future::ready(sealed))
    }

    fn out_of_storage<'a>(
        &'a self,
        key: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        Box::pin(async move {
            let in_force = self.encryption.in_force.load_full();
            let Some(providers) = in_force.rules.providers(&self.names) else {
                return Ok(Transformed { value: identity::open(&stored)?, stale: false });
            };
            let opened = providers.open(self.scope(), key, stored).await?;
            Ok(Transformed { value: opened.value, stale: opened.stale })
        })
    }

    fn stores_values_as_they_are(&self) -> bool {
        // With reload, a rule may come for any resource.
        !self.encryption.options.automatic_reload && !self.has_rule()
    }

    fn is_plain(&self, stored: &[u8]) -> bool {
        identity::is_plain(stored) && !self.has_rule()
    }
}
