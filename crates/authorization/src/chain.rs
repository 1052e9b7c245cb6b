//! The authorizers of a configuration, and what puts another configuration in force.
//!
//! The chain in force stands behind an atomic pointer: a request is judged by one chain from beginning to end. Members of
//! `system:masters` are asked for before all others, so that no configuration locks the administrators out.
//!
//! A server has its requests judged before all that judges them is there (roles are objects that the server serves). So
//! a chain is loaded first, which finds all mistakes, and started when its parts are there; until then only
//! `system:masters` may do anything.

use crate::{
    abac::{AbacAuthorizer, AbacError},
    config::{
        AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType,
        InvalidConfiguration,
    },
    metrics::{AuthorizationMetrics, content_hash},
    webhook::WebhookAuthorizer,
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{
        AlwaysAllow, Attributes, Authorizer, AuthorizerChain, Decision, PrivilegedGroups, ResolvedRules,
        Verdict,
    },
};
use pintle_machinery::{UserInfo, status::aggregate, user::SYSTEM_MASTERS};
use std::{future::ready, io, path::PathBuf, sync::Arc, time::Duration};

/// Where a configuration comes from.
#[derive(Debug, Clone)]
pub enum ConfigurationSource {
    /// From a file, which is read again when it changes.
    File {
        /// The file.
        path: PathBuf,
        /// How often it is looked at for changes; kube-apiserver does so once a minute.
        poll_interval: Duration,
    },
    /// From flags.
    Fixed(AuthorizationConfiguration),
}

/// Why there is no authorization.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// The configuration file cannot be read.
    #[error("authorization configuration file {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The configuration is wrong.
    #[error("authorization configuration file {path:?}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: InvalidConfiguration,
    },
    /// The policy file is wrong.
    #[error(transparent)]
    Policies(#[from] AbacError),
    /// An authorizer cannot be made.
    #[error("authorizer {name:?}: {reason}")]
    Build {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// The authorizers that know the server's objects.
#[derive(Clone, Default)]
pub struct ObjectAuthorizers {
    /// Decides for nodes; needed when the configuration has [`AuthorizerType::Node`].
    pub node: Option<Arc<dyn Authorizer>>,
    /// Decides by roles; needed when the configuration has [`AuthorizerType::Rbac`].
    pub rbac: Option<Arc<dyn Authorizer>>,
}

/// Decides as the configuration in force says.
pub struct ConfiguredAuthorizer {
    source: ConfigurationSource,
    abac: Option<Arc<AbacAuthorizer>>,
    metrics: Arc<AuthorizationMetrics>,
    in_force: ArcSwap<AuthorizerChain>,
    state: Mutex<State>,
}

/// What the next configuration is compared with.
struct State {
    configuration: AuthorizationConfiguration,
    hash: String,
    objects: ObjectAuthorizers,
}

impl ConfiguredAuthorizer {
    /// Reads the configuration and the policy file, if there are to be any.
    ///
    /// # Errors
    /// When one of them cannot be read or is wrong.
    pub fn load(
        source: ConfigurationSource,
        policy_file: Option<PathBuf>,
        metrics: Arc<AuthorizationMetrics>,
    ) -> Result<Arc<ConfiguredAuthorizer>, AuthorizationError> {
        let (configuration, hash) = match &source {
            ConfigurationSource::Fixed(configuration) => (configuration.clone(), String::new()),
            ConfigurationSource::File { path, .. } => {
                let bytes = read(path)?;
                (parse(path, &bytes)?, content_hash(&bytes))
            }
        };
        let has_policies = configuration.has(AuthorizerType::Abac);
        let abac = match policy_file.filter(|_| has_policies) {
            Some(path) => Some(Arc::new(AbacAuthorizer::read(&path)?)),
            None => None,
        };
        if has_policies && abac.is_none() {
            let reason = "authorization-mode ABAC's authorization policy file not passed".to_owned();
            return Err(AuthorizationError::Build { name: AuthorizerType::Abac.authorizer_name(), reason });
        }
        let in_force = ArcSwap::from_pointee(AuthorizerChain::new(vec![privileged()]));
        let state = Mutex::new(State { configuration, hash, objects: ObjectAuthorizers::default() });
        let authorizer = ConfiguredAuthorizer { source, abac, metrics, in_force, state };
        // What webhooks need is found wrong now rather than later.
        authorizer.webhooks()?;
        Ok(Arc::new(authorizer))
    }

    /// Whether the configuration has an authorizer of this type, for which there will have to be one.
    pub fn has(&self, authorizer_type: AuthorizerType) -> bool {
        self.state.lock().configuration.has(authorizer_type)
    }

    /// Puts the configuration in force.
    ///
    /// # Errors
    /// When an authorizer of it cannot be made, or is not given.
    pub fn start(&self, objects: ObjectAuthorizers) -> Result<(), AuthorizationError> {
        let mut state = self.state.lock();
        state.objects = objects;
        let chain = self.chain(&state.configuration, &state.objects)?;
        self.in_force.store(Arc::new(chain));
        if matches!(self.source, ConfigurationSource::File { .. }) {
            self.metrics.config_in_force(&state.hash);
        }
        Ok(())
    }

    /// Looks at the file again and again and puts what is new in it in force. Returns at once when there is no file, never
    /// when there is one; dropping it ends it.
    pub async fn run(self: Arc<Self>) {
        let ConfigurationSource::File { poll_interval, .. } = self.source else { return };
        loop {
            tokio::time::sleep(poll_interval).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => {
                    let hash = self.state.lock().hash.clone();
                    self.metrics.reloaded(Some(&hash));
                    tracing::info!(hash, "new authorization configuration in force");
                }
                Err(error) => {
                    self.metrics.reloaded(None);
                    tracing::error!(%error, "the authorization configuration stays as it was");
                }
            }
        }
    }

    /// Puts the file's configuration in force if it is another one and valid. What is wrong is told once, not again until
    /// the file has changed.
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
        let wanted = state.configuration.authorizers.iter().map(|own| own.kind.authorizer_type());
        let mut missing: Vec<_> = wanted
            .filter(|own| *own != AuthorizerType::Webhook && !configuration.has(*own))
            .map(AuthorizerType::as_str)
            .collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            let reason = format!("missing required types: [{}]", missing.join(" "));
            return Err(invalid(path, reason));
        }
        if configuration == state.configuration {
            return Ok(false);
        }
        let chain = self.chain(&configuration, &state.objects)?;
        state.configuration = configuration;
        self.in_force.store(Arc::new(chain));
        Ok(true)
    }

    /// Makes all webhooks once.
    fn webhooks(&self) -> Result<(), AuthorizationError> {
        let configuration = self.state.lock().configuration.clone();
        for AuthorizerConfiguration { name, kind } in &configuration.authorizers {
            if matches!(kind, AuthorizerKind::Webhook(_)) {
                self.build(name, kind, &ObjectAuthorizers::default())?;
            }
        }
        Ok(())
    }

    fn chain(
        &self,
        configuration: &AuthorizationConfiguration,
        objects: &ObjectAuthorizers,
    ) -> Result<AuthorizerChain, AuthorizationError> {
        let mut authorizers = vec![privileged()];
        for AuthorizerConfiguration { name, kind } in &configuration.authorizers {
            authorizers.push(Arc::new(Instrumented {
                authorizer_type: kind.authorizer_type(),
                name: name.clone(),
                metrics: self.metrics.clone(),
                authorizer: self.build(name, kind, objects)?,
            }));
        }
        Ok(AuthorizerChain::new(authorizers))
    }

    fn build(
        &self,
        name: &str,
        kind: &AuthorizerKind,
        objects: &ObjectAuthorizers,
    ) -> Result<Arc<dyn Authorizer>, AuthorizationError> {
        let failed = |reason| AuthorizationError::Build { name: name.to_owned(), reason };
        let given = |authorizer: Option<Arc<dyn Authorizer>>| {
            authorizer.ok_or_else(|| {
                failed(format!(
                    "authorizer type {} is not allowed if it was not enabled at initial server startup",
                    kind.authorizer_type()
                ))
            })
        };
        match kind {
            AuthorizerKind::Webhook(webhook) => {
                let webhook =
                    WebhookAuthorizer::new(name.to_owned(), (**webhook).clone(), self.metrics.clone());
                Ok(Arc::new(webhook.map_err(failed)?))
            }
            AuthorizerKind::BuiltIn(authorizer_type) => match authorizer_type {
                AuthorizerType::AlwaysAllow => Ok(Arc::new(AlwaysAllow)),
                AuthorizerType::AlwaysDeny => Ok(Arc::new(AlwaysDeny)),
                AuthorizerType::Abac => given(self.abac.clone().map(|abac| abac as Arc<dyn Authorizer>)),
                AuthorizerType::Node => given(objects.node.clone()),
                AuthorizerType::Rbac => given(objects.rbac.clone()),
                AuthorizerType::Webhook => Err(failed("a webhook needs its settings".to_owned())),
            },
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

fn read(path: &PathBuf) -> Result<Vec<u8>, AuthorizationError> {
    std::fs::read(path).map_err(|source| AuthorizationError::Read { path: path.clone(), source })
}

fn parse(path: &PathBuf, bytes: &[u8]) -> Result<AuthorizationConfiguration, AuthorizationError> {
    let parsed = AuthorizationConfiguration::parse(bytes);
    parsed.map_err(|source| AuthorizationError::Invalid { path: path.clone(), source })
}

fn invalid(path: &PathBuf, reason: String) -> AuthorizationError {
    let source = InvalidConfiguration(aggregate([reason].into_iter()));
    AuthorizationError::Invalid { path: path.clone(), source }
}

/// Lets nobody do anything that nobody else lets them do.
struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let verdict =
            Verdict { reason: "Everything is forbidden.".into(), ..Verdict::new(Decision::NoOpinion) };
        Box::pin(ready(verdict))
    }
}

/// Counts what an authorizer decides.
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
