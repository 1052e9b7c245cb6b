//! Loads and reloads the trusted token issuers (`--authentication-config`).

use crate::{Options, dynamic_files::DynamicFiles, run_error::RunError};
use pintle_apiserver::serving::stopped;
use pintle_authentication::{
    Anonymous, JwtMetrics,
    config::{self, AnonymousAuthConfig, AuthenticationConfiguration, ConfigError},
    oidc::{Algorithm, Issuers},
};
use pintle_dialer::EgressSelector;
use pintle_machinery::{FieldPath, error_list::FieldError};
use pintle_supervisor::Supervisor;
use std::{path::PathBuf, sync::Arc};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// The issuers, and the rule for anonymous requests.
pub(crate) struct AuthenticationConfig {
    pub(crate) issuers: Option<Arc<Issuers>>,
    pub(crate) anonymous: Anonymous,
    file: Option<ConfigFile>,
}

/// The file, and the state that reloading it needs.
#[derive(Clone)]
struct ConfigFile {
    path: PathBuf,
    content: Vec<u8>,
    anonymous: Option<AnonymousAuthConfig>,
    own_issuers: Vec<String>,
    metrics: JwtMetrics,
}

/// A valid configuration that is not in force yet.
struct Candidate {
    config: AuthenticationConfiguration,
    own_issuers: Vec<String>,
    content: Vec<u8>,
}

impl AuthenticationConfig {
    /// Loads the configuration from the file, or from flags. `own_issuers` are the server's own, which no other issuer
    /// may equal.
    pub(crate) fn load(
        options: &Options,
        own_issuers: Vec<String>,
        metrics: &JwtMetrics,
        egress: &EgressSelector,
    ) -> Result<AuthenticationConfig, RunError> {
        let given = &options.authentication;
        let (config, algorithms, content) = match &given.config_file {
            None => {
                let config = given.oidc.configuration().map_err(RunError::Options)?;
                (config, given.oidc.algorithms().map_err(RunError::Options)?, Vec::new())
            }
            Some(path) => {
                let (config, content) = config::read(path).map_err(told)?;
                // The keys of an issuer determine its algorithms.
                (config, Algorithm::ALL.to_vec(), content)
            }
        };
        let anonymous = match (&config.anonymous, given.anonymous_auth) {
            (Some(_), Some(_)) => {
                let field = FieldPath::new("anonymous");
                let detail = "--anonymous-auth flag cannot be set when anonymous field is configured in \
                              authentication configuration file";
                return Err(RunError::Options(FieldError::forbidden(&field, detail).to_string()));
            }
            (Some(anonymous), None) => {
                Anonymous { enabled: anonymous.enabled, paths: anonymous.conditions.clone() }
            }
            (None, allowed) => {
                Anonymous { enabled: allowed.unwrap_or(true) && !everybody_may(options), paths: Vec::new() }
            }
        };
        let expressions = config::validate(&config, &own_issuers);
        let expressions = expressions.map_err(|errors| told(ConfigError::Invalid(errors)))?;
        // The file may name issuers later.
        let issuers = match given.config_file.is_some() || !config.jwt.is_empty() {
            true => Some(Arc::new(
                Issuers::start(&config, expressions, algorithms, metrics.clone(), egress.clone())
                    .map_err(RunError::Options)?,
            )),
            false => None,
        };
        let file = given.config_file.clone().map(|path| ConfigFile {
            path,
            content,
            anonymous: config.anonymous,
            own_issuers,
            metrics: metrics.clone(),
        });
        if let Some(file) = &file {
            metrics.config_in_force(&file.content);
        }
        Ok(AuthenticationConfig { issuers, anonymous, file })
    }

    /// Starts reloading: returns the watched file, and the task that puts a changed configuration in force once its
    /// issuers respond.
    pub(crate) fn follow(
        &self,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Option<(DynamicFiles, JoinHandle<()>)> {
        let (file, issuers) = (self.file.clone()?, self.issuers.clone()?);
        let (found, candidates) = mpsc::unbounded_channel();
        let ConfigFile { path, content, anonymous, own_issuers, metrics } = file;
        let counted = metrics.clone();
        let apply = move |contents: &[Vec<u8>]| {
            let content = contents.first().cloned().unwrap_or_default();
            let candidate = read_again(content, anonymous.as_ref(), &own_issuers)?;
            // The receiver is gone when the server stops.
            let _ = found.send(candidate);
            Ok(())
        };
        let files = DynamicFiles::new("authentication-config", vec![path], vec![content], Box::new(apply))
            .on_failure(move || counted.reloaded(None));
        let mut stopping = stopping.clone();
        let task = supervisor.spawn("authentication-config", async move {
            tokio::select! {
                () = put_in_force(&issuers, &metrics, candidates) => {}
                () = stopped(&mut stopping) => {}
            }
        });
        Some((files, task))
    }
}

/// Whether `AlwaysAllow` is configured, in which case anonymous requests are rejected.
fn everybody_may(options: &Options) -> bool {
    let everybody_may = options.authorization.modes.iter().any(|mode| mode == "AlwaysAllow");
    if everybody_may && options.authentication.anonymous_auth != Some(false) {
        tracing::warn!(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use \
             a different authorizer"
        );
    }
    everybody_may
}

/// Puts candidates in force until the channel closes. A candidate whose issuers do not respond is retried until there
/// is a newer one.
async fn put_in_force(
    issuers: &Issuers,
    metrics: &JwtMetrics,
    mut candidates: mpsc::UnboundedReceiver<Candidate>,
) {
    let mut next = candidates.recv().await;
    while let Some(candidate) = next.take() {
        let replaced = async {
            loop {
                let Ok(expressions) = config::validate(&candidate.config, &candidate.own_issuers) else {
                    return;
                };
                match issuers.replace(&candidate.config, expressions).await {
                    Ok(()) => break,
                    Err(error) => {
                        metrics.reloaded(None);
                        tracing::error!(error, "failed to update authentication config");
                    }
                }
            }
            metrics.reloaded(Some(&candidate.content));
            tracing::info!("reloaded authentication config");
        };
        next = tokio::select! {
            newer = candidates.recv() => newer,
            () = replaced => candidates.recv().await,
        };
    }
}

fn read_again(
    content: Vec<u8>,
    anonymous: Option<&AnonymousAuthConfig>,
    own_issuers: &[String],
) -> Result<Candidate, String> {
    let config = config::parse(&content)?;
    let mut errors = config::validate(&config, own_issuers).err().unwrap_or_default();
    if config.anonymous.as_ref() != anonymous {
        let field = FieldPath::new("anonymous");
        errors.push(FieldError::forbidden(&field, "changed from initial configuration file"));
    }
    match errors.is_empty() {
        true => Ok(Candidate { config, own_issuers: own_issuers.to_vec(), content }),
        false => Err(ConfigError::Invalid(errors).to_string()),
    }
}

fn told(error: ConfigError) -> RunError {
    RunError::Options(error.to_string())
}
