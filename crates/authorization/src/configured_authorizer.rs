//! Builds the chain of configured authorizers, and reloads the configuration.
//!
//! The chain in force is behind an atomic pointer: one chain decides on a request from beginning to end. Members of
//! `system:masters` are allowed first, so that no configuration locks the administrators out.
//!
//! Authorizers that use the server's objects or policies have to be in the first configuration, which they are built
//! for. Later configurations must have the same ones.

use crate::{
    abac::{AbacAuthorizer, AbacError},
    authorizer_chain::AuthorizerChain,
    config::{
        AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType,
        InvalidConfiguration,
    },
    metrics::AuthorizationMetrics,
    privileged_groups::PrivilegedGroups,
    webhook::WebhookAuthorizer,
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{AlwaysAllow, Attributes, Authorizer, Decision, ResolvedRules, Verdict},
};
use pintle_config_metrics::content_hash;
use pintle_dialer::Dialer;
use pintle_go_forms::{FileError, read_file};
use pintle_machinery::{UserInfo, status::aggregate, user::SYSTEM_MASTERS};
use std::{
    collections::HashSet,
    future::ready,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// The source of the configuration.
#[derive(Debug, Clone)]
pub enum ConfigurationSource {
    /// A file, which is reloaded when it changes.
    File {
        /// The file.
        path: PathBuf,
        /// How often the file is checked for changes. Kube-apiserver uses file notifications, and polls once a minute
        /// besides.
        poll_interval: Duration,
    },
    /// From flags.
    Fixed(AuthorizationConfiguration),
}

/// The reason why the authorizers cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// The configuration file cannot be read.
    #[error("failed to read AuthorizationConfiguration from file {path:?} [{source}]")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: FileError,
    },
    /// The configuration is invalid.
    #[error("{source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: InvalidConfiguration,
    },
    /// The policy file cannot be used.
    #[error(transparent)]
    Policies(#[from] AbacError),
    /// An authorizer cannot be built.
    #[error("invalid authorization config: {reason}")]
    Build {
        /// The authorizer's name.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// The authorizers that use the server's objects.
#[derive(Clone)]
pub struct ObjectAuthorizers {
    /// The node authorizer.
    pub node: Arc<dyn Authorizer>,
    /// The RBAC authorizer.
    pub rbac: Arc<dyn Authorizer>,
}

/// Authorizes by the configuration in force.
pub struct ConfiguredAuthorizer {
    source: ConfigurationSource,
    parts: Parts,
    in_force: ArcSwap<AuthorizerChain>,
    state: Mutex<State>,
}

/// The parts that chains are built from.
struct Parts {
    objects: ObjectAuthorizers,
    abac: Option<Arc<AbacAuthorizer>>,
    metrics: Arc<AuthorizationMetrics>,
    /// The authorizer types of the first configuration.
    types: HashSet<AuthorizerType>,
    /// Connects to webhooks.
    dialer: Dialer,
}

/// The configuration in force, which the next one is compared with.
struct State {
    configuration: AuthorizationConfiguration,
    hash: String,
}

impl ConfiguredAuthorizer {
    /// Loads the configuration and the policy file, if there are any, and puts them in force.
    ///
    /// # Errors
    /// When a file cannot be read or is invalid, or an authorizer cannot be built.
    pub fn load(
        source: ConfigurationSource,
        policy_file: Option<PathBuf>,
        objects: ObjectAuthorizers,
        metrics: Arc<AuthorizationMetrics>,
        dialer: Dialer,
    ) -> Result<Arc<ConfiguredAuthorizer>, AuthorizationError> {
        let (configuration, hash) = match &source {
            ConfigurationSource::Fixed(configuration) => (configuration.clone(), String::new()),
            ConfigurationSource::File { path, .. } => {
                let bytes = read(path)?;
                (parse(path, &bytes)?, content_hash(&bytes))
            }
        };
        let has_policies = configuration.has(AuthorizerType::Abac);
        if policy_file.is_some() && !has_policies {
            let reason = "cannot specify --authorization-policy-file without mode ABAC".to_owned();
            return Err(AuthorizationError::Build { name: AuthorizerType::Abac.authorizer_name(), reason });
        }
        let abac = match policy_file.filter(|_| has_policies) {
            Some(path) => Some(Arc::new(AbacAuthorizer::read(&path)?)),
            None => None,
        };
        let types = configuration.authorizers.iter().map(|own| own.kind.authorizer_type()).collect();
        let parts = Parts { objects, abac, metrics, types, dialer };
        let chain = parts.chain(&configuration)?;
        if matches!(source, ConfigurationSource::File { .. }) {
            parts.metrics.config().in_force(&hash);
        }
        let state = Mutex::new(State { configuration, hash });
        Ok(Arc::new(ConfiguredAuthorizer { source, parts, in_force: ArcSwap::from_pointee(chain), state }))
    }

    /// Whether the configuration has an authorizer of this type; except for webhooks, this never changes.
    pub fn has(&self, authorizer_type: AuthorizerType) -> bool {
        self.parts.types.contains(&authorizer_type)
    }

    /// Polls the file and reloads it. Returns at once when there is no file, and never otherwise; drop the future to
    /// end it.
    pub async fn run(self: Arc<Self>) {
        let ConfigurationSource::File { poll_interval, .. } = self.source else { return };
        // When an unreadable file was last logged and counted.
        let mut unreadable: Option<Instant> = None;
        loop {
            tokio::time::sleep(poll_interval).await;
            let outcome = self.reload();
            match &outcome {
                Err(AuthorizationError::Read { .. }) => {
                    if unreadable.is_some_and(|told| told.elapsed() < UNREADABLE_INTERVAL) {
                        continue;
                    }
                    unreadable = Some(Instant::now());
                }
                _ => unreadable = None,
            }
            match outcome {
                Ok(false) => {}
                Ok(true) => {
                    let hash = self.state.lock().hash.clone();
                    self.parts.metrics.config().reloaded(Some(&hash));
                    tracing::info!(hash, "new authorization configuration in force");
                }
                Err(error) => {
                    self.parts.metrics.config().reloaded(None);
                    tracing::error!(%error, "the authorization configuration stays as it was");
                }
            }
        }
    }

    /// Puts the file's configuration in force if it is different and valid. An error is reported once, until the file
    /// changes again.
    pub(crate) fn reload(&self) -> Result<bool, AuthorizationError> {
        let ConfigurationSource::File { path, .. } = &self.source else { return Ok(false) };
        let bytes = read(path)?;
        let hash = content_hash(&bytes);
        let mut state = self.state.lock();
        if hash == state.hash {
            return Ok(false);
        }
        state.hash = hash;
        let configuration = parse(path, &bytes)?;
        let wanted = self.parts.types.iter().filter(|own| **own != AuthorizerType::Webhook);
        let missing = wanted.filter(|own| !configuration.has(**own)).map(|own| own.as_str());
        let mut missing: Vec<_> = missing.collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            let reason = format!("missing required types: [{}]", missing.join(" "));
            return Err(invalid(path, reason));
        }
        if configuration == state.configuration {
            return Ok(false);
        }
        let chain = self.parts.chain(&configuration)?;
        state.configuration = configuration;
        self.in_force.store(Arc::new(chain));
        Ok(true)
    }
}

/// The interval at which an unreadable file is logged and counted.
const UNREADABLE_INTERVAL: Duration = Duration::from_secs(60);

impl Parts {
    fn chain(
        &self,
        configuration: &AuthorizationConfiguration,
    ) -> Result<AuthorizerChain, AuthorizationError> {
        let mut authorizers = vec![privileged()];
        for AuthorizerConfiguration { name, kind } in &configuration.authorizers {
            let authorizer = self.build(name, kind);
            let authorizer =
                authorizer.map_err(|reason| AuthorizationError::Build { name: name.clone(), reason })?;
            authorizers.push(Arc::new(Instrumented {
                authorizer_type: kind.authorizer_type(),
                name: name.clone(),
                metrics: self.metrics.clone(),
                authorizer,
            }));
        }
        Ok(AuthorizerChain::new(authorizers))
    }

    fn build(&self, name: &str, kind: &AuthorizerKind) -> Result<Arc<dyn Authorizer>, String> {
        let authorizer_type = match kind {
            AuthorizerKind::Webhook(webhook) => {
                let webhook = (**webhook).clone();
                return Ok(Arc::new(WebhookAuthorizer::new(
                    name.to_owned(),
                    webhook,
                    self.metrics.clone(),
                    &self.dialer,
                )?));
            }
            AuthorizerKind::BuiltIn(authorizer_type) => *authorizer_type,
        };
        // Authorizers without state may be added and removed.
        let needs_nothing =
            matches!(authorizer_type, AuthorizerType::AlwaysAllow | AuthorizerType::AlwaysDeny);
        if !needs_nothing && !self.types.contains(&authorizer_type) {
            return Err(format!(
                "authorizer type {authorizer_type} is not allowed if it was not enabled at initial server startup"
            ));
        }
        match authorizer_type {
            AuthorizerType::AlwaysAllow => Ok(Arc::new(AlwaysAllow)),
            AuthorizerType::AlwaysDeny => Ok(Arc::new(AlwaysDeny)),
            AuthorizerType::Abac => match &self.abac {
                Some(abac) => Ok(abac.clone()),
                None => Err("authorization-mode ABAC's authorization policy file not passed".to_owned()),
            },
            AuthorizerType::Node => Ok(self.objects.node.clone()),
            AuthorizerType::Rbac => Ok(self.objects.rbac.clone()),
            AuthorizerType::Webhook => Err("a webhook needs its settings".to_owned()),
        }
    }
}

impl Authorizer for ConfiguredAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let chain = self.in_force.load_full();
        Box::pin(async move { chain.authorize(attributes).await })
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        let chain = self.in_force.load_full();
        Box::pin(async move { chain.rules_for(user, namespace).await })
    }
}

fn privileged() -> Arc<dyn Authorizer> {
    Arc::new(PrivilegedGroups::new([SYSTEM_MASTERS]))
}

impl AuthorizationConfiguration {
    /// Reads a file, and validates it.
    ///
    /// # Errors
    /// When the file cannot be read, or all errors of the configuration.
    pub fn read(path: &Path) -> Result<AuthorizationConfiguration, AuthorizationError> {
        parse(path, &read(path)?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, AuthorizationError> {
    read_file(path).map_err(|source| AuthorizationError::Read { path: path.to_owned(), source })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<AuthorizationConfiguration, AuthorizationError> {
    let parsed = AuthorizationConfiguration::parse(bytes);
    parsed.map_err(|source| AuthorizationError::Invalid { path: path.to_owned(), source })
}

fn invalid(path: &Path, reason: String) -> AuthorizationError {
    let source = InvalidConfiguration(aggregate([reason].into_iter()));
    AuthorizationError::Invalid { path: path.to_owned(), source }
}

/// Has no opinion on any request, so that it is denied unless another authorizer allows it.
struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let verdict =
            Verdict { reason: "Everything is forbidden.".into(), ..Verdict::new(Decision::NoOpinion) };
        Box::pin(ready(verdict))
    }
}

/// Counts the decisions of an authorizer.
struct Instrumented {
    authorizer_type: AuthorizerType,
    name: String,
    metrics: Arc<AuthorizationMetrics>,
    authorizer: Arc<dyn Authorizer>,
}

impl Authorizer for Instrumented {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let verdict = self.authorizer.authorize(attributes).await;
            self.metrics.decided(self.authorizer_type.as_str(), &self.name, verdict.decision);
            verdict
        })
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        self.authorizer.rules_for(user, namespace)
    }
}

#[cfg(test)]
mod tests;
