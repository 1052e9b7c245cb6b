//! Starts and stops a server.

use crate::{
    Options,
    authentication::{Authentication, OwnTokens},
    authorization::Authorization,
    certificates::{Certificates, write_private},
    chain::{self, Foundation},
    dynamic_files,
    encryption::EncryptionAtRest,
    engine::EngineMetrics,
    engines::Engines,
    hooks,
    kubeconfig::kubeconfig,
    process_limits,
    run_error::RunError,
    secure_serving::SecureServing,
    storage_options::{storage_factory, warn_of_unused_overrides},
    tokens::Tokens,
};
use pintle_apiserver::{
    base::{body_budget::BodyBudget, handler::Handler},
    filters::ChainConfig,
    health::Health,
    serving::{ResponseBudget, ServingConfig, serve},
};
use pintle_audit::{AuditMetrics, Auditor};
use pintle_storage::{Storage, StorageError};
use pintle_supervisor::Supervisor;
use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};

/// A running server. Dropping it leaves the server running; [`Running::stop`] ends it.
pub struct Running {
    address: SocketAddr,
    kubeconfig: PathBuf,
    kubeconfig_text: String,
    handler: Handler,
    stop: watch::Sender<bool>,
    serving: JoinHandle<io::Result<()>>,
    background: Vec<JoinHandle<()>>,
    engines: Arc<Engines>,
    auditor: Option<Arc<Auditor>>,
    shutdown_grace_period: Duration,
    stores: Vec<Arc<pintle_apiserver::registry::Stores>>,
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

    /// Stops the server: no new connections are accepted, requests in flight finish, watches end, the store is synced
    /// and closed.
    ///
    /// # Errors
    /// When closing the store fails.
    pub async fn stop(self) -> Result<(), StorageError> {
        self.stop.send_replace(true);
        match self.serving.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "serving ended with an error"),
            Err(error) => tracing::error!(%error, "serving ended unexpectedly"),
        }
        // All requests are answered: no further audit events follow.
        if let Some(auditor) = self.auditor {
            auditor.shutdown(self.shutdown_grace_period).await;
        }
        for task in self.background {
            // Background tasks stop on the same channel.
            if let Err(error) = task.await {
                tracing::error!(%error, "a background task ended unexpectedly");
            }
        }
        for stores in &self.stores {
            stores.stop();
        }
        self.engines.close().await
    }
}

/// Starts a server on the current runtime and returns when it is ready to serve.
///
/// # Errors
/// When an option is invalid or a part of the server cannot start; nothing is served then.
pub async fn start(options: Options) -> Result<Running, RunError> {
    let data_dir = |source| RunError::DataDir { path: options.data_dir.display().to_string(), source };
    std::fs::create_dir_all(&options.data_dir).map_err(data_dir)?;
    let engine_metrics =
        Arc::new(EngineMetrics::new().map_err(|error| RunError::Assemble(error.to_string()))?);
    let engines = Arc::new(Engines::open(&options, &engine_metrics).await?);
    let (stop, _) = watch::channel(false);
    match start_on(&engines, &engine_metrics, &stop, options).await {
        Ok(running) => Ok(running),
        Err(error) => {
            // The tasks that were started release the store, so that another attempt can open it.
            stop.send_replace(true);
            if let Err(error) = engines.close().await {
                tracing::warn!(%error, "the store of a server that did not start is not closed in order");
            }
            Err(error)
        }
    }
}

/// Starts a server on open engines. After a failure, the tasks that were started run until `stop` becomes true.
async fn start_on(
    engines: &Arc<Engines>,
    engine_metrics: &Arc<EngineMetrics>,
    stop: &watch::Sender<bool>,
    options: Options,
) -> Result<Running, RunError> {
    let stopping = stop.subscribe();
    let supervisor = Supervisor::current();
    let network = Arc::new(options.service_network().map_err(RunError::Options)?);
    let audit_metrics = AuditMetrics::new().map_err(|error| RunError::Assemble(error.to_string()))?;
    let auditor = options.audit.auditor(&audit_metrics)?;
    let certificates = Certificates::load_or_make(&options, network.api_server_address())?;
    let tokens = Tokens::load(&options)?;
    let secure_serving = Arc::new(SecureServing::load(&options, &certificates)?);
    let transport = options.serving.transport_filters().map_err(RunError::Options)?;
    let authorization = Authorization::load(&options)?;
    let encryption = EncryptionAtRest::load(&options).await?;
    let address = SocketAddr::new(options.bind_address, options.secure_port);
    let listen = |source| RunError::Listen { address, source };
    let listener = options.serving.listen(address).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let factory = storage_factory(&options, engines).encryption(encryption.resources());
    let factory = Arc::new(factory);
    let health = Arc::new(Health::new(supervisor.clone()));
    hooks::add_loopback(&health);
    engines.watch_health(&health, &options, &supervisor, &stopping);
    let chain = chain::build(Foundation {
        options: &options,
        port: address.port(),
        network,
        storage: &factory,
        authorization: &authorization,
        tokens: &tokens,
        health,
        supervisor: &supervisor,
        shutdown: &stopping,
    })?;
    let informers = authorization.follow(&chain, &stopping)?;
    encryption.observe(&chain)?;
    engine_metrics.observe(&chain)?;
    let registered = chain.metrics.register(audit_metrics.collectors());
    registered.map_err(|error| RunError::Assemble(error.to_string()))?;
    engines.watch_sizes(&chain, &options, &stopping);
    warn_of_unused_overrides(&options, &chain.all_stores);
    // Custom resources are served from the first request on.
    chain.api_extensions.wait_synced().await;
    authorization.wait_synced().await;
    for stores in &chain.all_stores {
        stores.wait_ready().await.map_err(RunError::Bootstrap)?;
    }
    chain.hooks.caches_filled();
    let own_tokens = OwnTokens {
        authenticators: tokens.authenticators(&options, &chain)?,
        issuers: options.service_accounts.issuers.clone(),
        audiences: options.service_accounts.audiences().to_vec(),
    };
    let authentication = Authentication::new(&options, &secure_serving, &chain.metrics, own_tokens)?;
    tokens.reviewer.set_authenticator(authentication.tokens);
    let handler = chain.server.clone().into_handler(ChainConfig {
        metrics: chain.metrics.clone(),
        auditor: auditor.clone(),
        authenticator: authentication.authenticator,
        request_headers: authentication.request_headers,
        transport,
        authorizer: authorization.authorizer(),
        request_timeout: options.request_timeout,
        flow_control: chain.flow_control.as_ref().map(|parts| parts.flow_control.clone()),
        max_requests_in_flight: options.max_requests_inflight,
        max_mutating_requests_in_flight: options.max_mutating_requests_inflight,
    });
    chain.hooks.admission_initializer.started();
    let cluster_authentication = secure_serving.cluster_authentication();
    let controllers = encryption
        .once_usable(|| {
            let cluster_authentication = &cluster_authentication;
            crate::bootstrap::start(
                &options,
                address.port(),
                &chain,
                cluster_authentication,
                &factory,
                &stopping,
            )
        })
        .await?;
    // The first request is authorized with the roles that were just created.
    authorization.rbac.catch_up().await;
    let mut background = vec![controllers];
    if let Some(parts) = &chain.flow_control {
        background.extend(parts.start(&supervisor, &chain.hooks, &stopping).await?);
    }
    let registration =
        chain.auto_registration.clone().map(|registration| registration.start(&supervisor, &stopping));
    chain.hooks.api_services_followed();
    background.extend(registration);
    background.extend(chain.api_extensions.into_tasks());
    chain.hooks.definitions_served();
    background.extend(informers);
    background.extend(engines.compact(options.etcd_compaction_interval, &supervisor, &stopping));
    background.extend(encryption.watch_config(&supervisor, &stopping));
    let mut files: Vec<_> = secure_serving.dynamic_files().into_iter().collect();
    if let Some((config_file, task)) = authentication.config.follow(&supervisor, &stopping) {
        files.push(config_file);
        background.push(task);
    }
    background.extend(dynamic_files::watch(files, &supervisor, &stopping));
    chain.hooks.reloaded_files.started();
    let host = match options.bind_address.is_unspecified() {
        true => "127.0.0.1".to_owned(),
        false => options.bind_address.to_string(),
    };
    let kubeconfig_text = kubeconfig(
        &format!("https://{host}:{}", address.port()),
        &certificates.ca_pem,
        &certificates.admin_cert_pem,
        &certificates.admin_key_pem,
    );
    let kubeconfig = options.data_dir.join("admin.kubeconfig");
    write_private(&kubeconfig, &kubeconfig_text)?;
    let serving = ServingConfig {
        tls: secure_serving.tls.clone(),
        http2_max_streams_per_connection: options.serving.http2_max_streams_per_connection,
        grace_period: options.shutdown_grace_period,
        body_budget: BodyBudget::new(options.request_body_memory),
        response_budget: ResponseBudget::new(options.response_memory),
        max_connections: options.max_connections.unwrap_or_else(process_limits::max_connections),
    };
    let serving = tokio::spawn(serve(listener, serving, handler.clone(), stopping));
    Ok(Running {
        address,
        kubeconfig,
        kubeconfig_text,
        handler,
        stop: stop.clone(),
        serving,
        background,
        engines: engines.clone(),
        auditor,
        shutdown_grace_period: options.shutdown_grace_period,
        stores: chain.all_stores,
    })
}
