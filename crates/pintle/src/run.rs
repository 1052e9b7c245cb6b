//! Starts and stops a server.

use crate::{
    ManagementOptions, Options,
    certificates::CertificateError,
    config::Config,
    egress::Egress,
    engine::EngineMetrics,
    engines::Engines,
    hooks,
    kubeconfig::kubeconfig,
    lifecycle::Lifecycle,
    process_limits,
    run_error::RunError,
    server_chain::{ServerChain, verbosity_setter},
};
use pintle_apiserver::{
    base::{body_budget::BodyBudget, handler::Handler},
    drain::Drain,
    post_start_hooks::PostStartHooks,
    registry::Stores,
    server::Profiles,
    serving::{ResponseBudget, ServingConfig, debug_socket, serve},
};
use pintle_audit::Auditor;
use pintle_durable_file::{Readers, replace};
use pintle_feature_gates::FeatureGates;
use pintle_storage::{Storage, StorageError};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::timeout};

/// A running server. Dropping it leaves the server running; [`Running::stop`] ends it.
pub struct Running {
    address: SocketAddr,
    kubeconfig: PathBuf,
    kubeconfig_text: String,
    handler: Handler,
    lifecycle: Lifecycle,
    drain: Arc<Drain>,
    shutdown: ManagementOptions,
    request_timeout: Duration,
    serving: Option<JoinHandle<()>>,
    hooks: PostStartHooks,
    engines: Arc<Engines>,
    auditor: Option<Arc<Auditor>>,
    shutdown_grace_period: Duration,
    stores: Vec<Arc<Stores>>,
}

impl Running {
    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig file.
    pub fn kubeconfig(&self) -> &PathBuf {
        &self.kubeconfig
    }

    /// The text of the administrator's kubeconfig. It holds a private key.
    pub fn kubeconfig_text(&self) -> &str {
        &self.kubeconfig_text
    }

    /// The engine, with keys and values in their stored form: for tests that inspect them or write to it directly.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.engines.default.storage
    }

    /// The handler behind the socket: for requests from within the process. They are authenticated by their token, or
    /// by the [`pintle_apiserver::base::peer::PeerCertificates`] in their extensions.
    pub fn handler(&self) -> Handler {
        self.handler.clone()
    }

    /// Shuts the server down in kube-apiserver's order: `/readyz` fails; after the shutdown delay the other servers drop this
    /// one, and the port closes; requests, watches and streams have the time of a request. Then it stops as
    /// [`Running::stop`] does. With `shutdown_send_retry_after` the port stays open until the requests have ended; others
    /// get 429.
    ///
    /// # Errors
    /// When closing the store fails.
    pub async fn shut_down(mut self) -> Result<(), StorageError> {
        let ManagementOptions {
            shutdown_delay,
            shutdown_send_retry_after,
            shutdown_watch_termination_grace_period: watch_time,
            ..
        } = self.shutdown;
        self.lifecycle.begin();
        tokio::time::sleep(shutdown_delay).await;
        self.lifecycle.leave().await;
        if shutdown_send_retry_after {
            self.drain.refuse();
        }
        if !watch_time.is_zero() {
            self.lifecycle.end_watches();
            // The clients of watches learn of the end before the port closes.
            tokio::time::sleep(watch_time.min(WATCH_END_TIME)).await;
        }
        if shutdown_send_retry_after && timeout(self.request_timeout, self.drain.idle()).await.is_err() {
            tracing::warn!("requests are cut off: they have not ended in the time of a request");
        }
        self.lifecycle.close_port();
        let time = if shutdown_send_retry_after { RETRY_AFTER_TIME } else { self.request_timeout };
        if let Some(mut serving) = self.serving.take() {
            if timeout(time, &mut serving).await.is_err() {
                self.lifecycle.end_watches();
                if timeout(WATCH_END_TIME, &mut serving).await.is_err() {
                    tracing::warn!("requests are cut off at the end of the shutdown");
                }
            }
            serving.abort();
        }
        self.stop().await
    }

    /// Stops the server at once: no new connections are accepted, watches end, other requests in flight finish, the store
    /// is synced and closed.
    ///
    /// # Errors
    /// When closing the store fails.
    pub async fn stop(mut self) -> Result<(), StorageError> {
        self.lifecycle.stop();
        if let Some(serving) = self.serving.take()
            && let Err(error) = serving.await
        {
            tracing::error!(%error, "serving ended unexpectedly");
        }
        // All requests are answered: no further audit events follow.
        if let Some(auditor) = self.auditor {
            auditor.shutdown(self.shutdown_grace_period).await;
        }
        // Background tasks stop on the same channel.
        self.hooks.stopped().await;
        for stores in &self.stores {
            stores.stop();
        }
        self.engines.close().await
    }
}

/// How long watches may take to end, once they have to.
const WATCH_END_TIME: Duration = Duration::from_secs(1);
/// How long connections may take to end when requests have been refused for a while.
const RETRY_AFTER_TIME: Duration = Duration::from_secs(2);
/// How long the controllers of a server that did not start may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server on the current runtime and returns when it is ready to serve.
///
/// # Errors
/// When an option is invalid or a part of the server cannot start; nothing is served then.
pub async fn start(options: Options) -> Result<Running, RunError> {
    options.validate().map_err(RunError::Options)?;
    let gates = options.features.resolve().map_err(RunError::Options)?;
    pintle_feature_gates::install(&gates);
    let data_dir = |source| RunError::DataDir { path: options.data_dir.display().to_string(), source };
    std::fs::create_dir_all(&options.data_dir).map_err(data_dir)?;
    let engine_metrics = Arc::new(EngineMetrics::new()?);
    let egress = Egress::load(&options)?;
    let engines = Arc::new(Engines::open(&options, &egress, &engine_metrics).await?);
    let lifecycle = Lifecycle::default();
    match start_on(&engines, &engine_metrics, &lifecycle, (options, gates), egress).await {
        Ok(running) => Ok(running),
        Err(error) => {
            // The tasks that were started release the store, so that another attempt can open it.
            lifecycle.stop();
            if let Err(error) = engines.close().await {
                tracing::warn!(%error, "the store of a server that did not start is not closed in order");
            }
            Err(error)
        }
    }
}

/// Starts a server on open engines. After a failure, the tasks that were started run until `lifecycle` is over.
async fn start_on(
    engines: &Arc<Engines>,
    engine_metrics: &Arc<EngineMetrics>,
    lifecycle: &Lifecycle,
    (options, gates): (Options, FeatureGates),
    egress: Egress,
) -> Result<Running, RunError> {
    let (config, listener) = Config::new(options, gates, egress).await?;
    let config = config.complete(engines, engine_metrics, lifecycle)?;
    let chain = Arc::new(ServerChain::new(config)?);
    let hooks = hooks::register(&chain)?;
    let encryption = &chain.config.loaded.encryption;
    let started = encryption.once_usable(|| async { hooks.start().await.map_err(RunError::Bootstrap) }).await;
    if let Err(error) = started {
        // The controllers that have started withdraw what they have written, for which they need the store.
        lifecycle.stop();
        if tokio::time::timeout(STOP_PATIENCE, hooks.stopped()).await.is_err() {
            tracing::warn!("controllers of a server that did not start have not stopped in time");
        }
        return Err(error);
    }
    let (kubeconfig, kubeconfig_text) = write_kubeconfig(&chain.config.loaded)?;
    let serving = serving_config(&chain, lifecycle);
    let drain = chain.config.loaded.transport.drain.clone().unwrap_or_default();
    let options = chain.config.options();
    if options.management.send_retry_after_while_not_ready_once {
        tracing::warn!(
            "--send-retry-after-while-not-ready-once has no effect: requests wait until the server is ready"
        );
    }
    if options.debugging.contention_profiling {
        tracing::warn!("--contention-profiling has no effect: there is no profile of waiting for locks");
    }
    if let Some(path) = &options.debugging.debug_socket_path {
        // As in kube-apiserver, a server without its socket serves all the same.
        match debug_socket::listen(path) {
            Ok(listener) => {
                let verbosity = verbosity_setter(options.log_levels.clone());
                let profiles = Profiles::new().with_command_line();
                tokio::spawn(debug_socket::serve(listener, profiles, verbosity, lifecycle.port_closed()));
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the debug socket cannot be opened")
            }
        }
    }
    let handler = chain.handler.clone();
    Ok(Running {
        address: chain.config.loaded.address,
        kubeconfig,
        kubeconfig_text,
        serving: Some(tokio::spawn(serve(listener, serving, handler.clone(), lifecycle.port_closed()))),
        handler,
        lifecycle: lifecycle.clone(),
        drain,
        shutdown: options.management.clone(),
        request_timeout: options.request_timeout,
        hooks,
        engines: engines.clone(),
        auditor: chain.config.loaded.auditor.clone(),
        shutdown_grace_period: chain.config.options().shutdown_grace_period,
        stores: chain.stores.all(),
    })
}

/// Writes the administrator's kubeconfig; returns its path and text.
fn write_kubeconfig(config: &Config) -> Result<(PathBuf, String), RunError> {
    let (options, certificates) = (&config.options, &config.certificates);
    let host = match options.bind_address.is_unspecified() {
        true => "127.0.0.1".to_owned(),
        false => options.bind_address.to_string(),
    };
    let text = kubeconfig(
        &format!("https://{host}:{}", config.address.port()),
        &certificates.ca_pem,
        &certificates.admin_cert_pem,
        &certificates.admin_key_pem,
    );
    let path = options.data_dir.join("admin.kubeconfig");
    replace(&path, text.as_bytes(), Readers::Owner)
        .map_err(|source| CertificateError::File { path: path.display().to_string(), source })?;
    Ok((path, text))
}

fn serving_config(chain: &ServerChain, lifecycle: &Lifecycle) -> ServingConfig {
    let config = &chain.config.loaded;
    let options = &config.options;
    let tls_handshake_errors = chain.config.metrics.tls_handshake_errors().clone();
    let mut serving =
        ServingConfig::new(config.secure_serving.tls.clone(), lifecycle.ending(), tls_handshake_errors);
    serving.http2_max_streams_per_connection = options.serving.http2_max_streams_per_connection;
    serving.grace_period = options.shutdown_grace_period;
    serving.body_budget = BodyBudget::new(options.request_body_memory);
    serving.response_budget = ResponseBudget::new(options.response_memory);
    serving.max_connections = options.max_connections.unwrap_or_else(process_limits::max_connections);
    serving
}
