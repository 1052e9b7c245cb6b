//! A running server: from options to an open port, and back.

use crate::{
    Options, StorageBackend,
    certificates::{CertificateError, Certificates, write_private},
    chain,
    kubeconfig::kubeconfig,
};
use pintle_apiserver::{
    filters::{ChainConfig, Handler},
    health::CheckScope,
    registry::{Engine, StorageFactory},
    serving::{ServingConfig, serve, stopped},
};
use pintle_auth::{TokenFile, TokenFileError, Union, authz::MastersOnly};
use pintle_machinery::Status;
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, MemoryStorage, Revision, Storage, StorageError};
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data directory cannot be used.
    #[error("{path}: {source}")]
    DataDir {
        /// The directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("opening the store: {0}")]
    Open(#[from] pintle_storage::OpenError),
    /// Certificates cannot be loaded or made.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The port cannot be listened on.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An option's value makes no sense.
    #[error("{0}")]
    Options(String),
    /// The parts do not fit together: a defect.
    #[error("assembling the server: {0}")]
    Assemble(String),
    /// The objects of a fresh server could not be made.
    #[error("making the objects of a fresh server: {0}")]
    Bootstrap(Status),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A server that serves. Dropping it leaves the server running; [`Running::stop`] ends it.
pub struct Running {
    address: SocketAddr,
    kubeconfig: PathBuf,
    kubeconfig_text: String,
    handler: Handler,
    stop: watch::Sender<bool>,
    serving: JoinHandle<io::Result<()>>,
    background: Vec<JoinHandle<()>>,
    storage: Arc<dyn Storage>,
    stores: Vec<Arc<pintle_apiserver::registry::Stores>>,
}

impl Running {
    /// The address it listens on.
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

    /// What answers requests, behind the socket: for who calls the server without one. Such a request is authenticated
    /// by its token, or by the [`pintle_apiserver::filters::PeerCertificates`] among its extensions.
    pub fn handler(&self) -> Handler {
        self.handler.clone()
    }

    /// Ends the server: no new connections, open requests finish, watches end, the store is synced and closed.
    ///
    /// # Errors
    /// When the store cannot be closed in order.
    pub async fn stop(self) -> Result<(), StorageError> {
        self.stop.send_replace(true);
        match self.serving.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "serving ended with an error"),
            Err(error) => tracing::error!(%error, "serving ended unexpectedly"),
        }
        for task in self.background {
            // Background work hears of the stop by the same channel.
            if let Err(error) = task.await {
                tracing::error!(%error, "a background task ended unexpectedly");
            }
        }
        for stores in &self.stores {
            stores.stop();
        }
        self.storage.close().await
    }
}

/// Starts a server on the current runtime and returns once it is ready to serve.
///
/// # Errors
/// Before anything is served.
pub async fn start(options: Options) -> Result<Running, RunError> {
    let data_dir = |source| RunError::DataDir { path: options.data_dir.display().to_string(), source };
    std::fs::create_dir_all(&options.data_dir).map_err(data_dir)?;
    let network = Arc::new(options.service_network().map_err(RunError::Options)?);
    let certificates = Certificates::load_or_make(&options, network.api_server_address())?;
    let tokens = options.token_auth_file.as_deref().map(TokenFile::read).transpose()?;
    let storage: Arc<dyn Storage> = match options.storage_backend {
        StorageBackend::Embedded => {
            Arc::new(EmbeddedStorage::open(options.data_dir.join("store"), EmbeddedOptions::default())?)
        }
        StorageBackend::Memory => Arc::new(MemoryStorage::new()),
    };
    let address = SocketAddr::new(options.bind_address, options.secure_port);
    let listen = |source| RunError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let (stop, stopping) = watch::channel(false);
    let engine = Engine { storage: storage.clone(), exclusive: true };
    let factory = StorageFactory::new(engine, options.etcd_prefix.clone());
    let factory = Arc::new(factory.media_type(options.storage_media_type.unwrap_or_default()));
    let chain = chain::build(&options, address.port(), network, &factory, &stopping)?;
    watch_storage(&chain, storage.clone(), stopping.clone());
    for stores in &chain.all_stores {
        stores.wait_ready().await.map_err(RunError::Bootstrap)?;
    }
    let handler = chain.server.clone().into_handler(ChainConfig {
        metrics: chain.metrics.clone(),
        authenticator: Arc::new(Union { tokens }),
        authorizer: Arc::new(MastersOnly),
        request_timeout: options.request_timeout,
        max_requests_in_flight: options.max_requests_inflight,
        max_mutating_requests_in_flight: options.max_mutating_requests_inflight,
    });
    let controllers =
        crate::bootstrap::start(&options, address.port(), &chain, &certificates, &stopping).await?;
    let mut background = vec![controllers];
    if !options.etcd_compaction_interval.is_zero() {
        let interval = options.etcd_compaction_interval;
        background.push(tokio::spawn(compact(storage.clone(), interval, stopping.clone())));
    }
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
    let serving = ServingConfig { tls: certificates.tls, grace_period: options.shutdown_grace_period };
    let serving = tokio::spawn(serve(listener, serving, handler.clone(), stopping));
    Ok(Running {
        address,
        kubeconfig,
        kubeconfig_text,
        handler,
        stop,
        serving,
        background,
        storage,
        stores: chain.all_stores,
    })
}

/// Forgets history that is older than the interval, once an interval.
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

/// Keeps the `etcd` check true as long as the store can serve, and notes its size.
fn watch_storage(chain: &chain::Chain, storage: Arc<dyn Storage>, mut stopping: watch::Receiver<bool>) {
    let (failure, failed) = watch::channel(None::<String>);
    let bytes = chain.storage_bytes.clone();
    tokio::spawn(async move {
        loop {
            failure.send_replace(storage.health().await.err().map(|error| error.to_string()));
            if let Ok(size) = storage.size().await {
                bytes.store(size, Ordering::Relaxed);
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
                () = stopped(&mut stopping) => return,
            }
        }
    });
    chain.health.add(
        "etcd",
        CheckScope::Always,
        Arc::new(move || match &*failed.borrow() {
            None => Ok(()),
            Some(why) => Err(why.clone()),
        }),
    );
}
