//! An extension API server on Pintle's crates: it serves the kind `Flunder` behind the API service
//! `v1.example.pintle.dev`.
//!
//! Users are authenticated by the aggregator of the cluster (front proxy) and authorized by the cluster
//! (`SubjectAccessReview`). Objects are in memory, or in etcd with `--etcd-servers`.

use clap::{Arg, ArgMatches, Command};
use pintle_apiextensions::FixedDefinition;
use pintle_apiserver::{
    discovery::Discovery,
    endpoints::ApiEndpoints,
    filters::ChainConfig,
    health::Health,
    metrics::Metrics,
    openapi_endpoints::OpenApiEndpoints,
    registry::{Engine, StorageFactory, Stores},
    server::{Front, GenericApiServer},
    serving::{
        ServingConfig, serve,
        tls::{CertificatePair, ServingTls, TlsContent, TlsSettings},
    },
    transports::Transports,
};
use pintle_auth::{RequestHeaders, authz::Authorizer};
use pintle_authentication::{Anonymous, CaBundle, FrontProxy, Union};
use pintle_authorization::{AuthorizationMetrics, WebhookAuthorizer, WebhookConfiguration};
use pintle_dialer::Dialer;
use pintle_machinery::{Value, json};
use pintle_openapi::OpenApi;
use pintle_storage::{EtcdOptions, EtcdStorage, MemoryStorage, Storage};
use pintle_supervisor::Supervisor;
use std::{error::Error, fs, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

const FLAGS: [(&str, &str); 6] = [
    ("listen", "the address and port to listen on"),
    ("tls-cert-file", "the serving certificate"),
    ("tls-private-key-file", "its key"),
    ("requestheader-client-ca-file", "the authority of the aggregator's client certificate"),
    ("authorization-kubeconfig", "a kubeconfig whose server is the cluster's URL of subjectaccessreviews"),
    ("etcd-servers", "an etcd server; objects are in memory without one"),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = FLAGS.map(|(name, help)| {
        let required = name != "etcd-servers";
        Arg::new(name).long(name).help(help).required(required)
    });
    let flags = Command::new("extension-server").args(args).get_matches();
    let (stop, stopping) = watch::channel(false);
    let definition = Arc::new(FixedDefinition::new(flunders())?);
    let supervisor = Supervisor::current();
    let engine = Engine { storage: storage(&flags).await?, exclusive: false };
    let storage = Arc::new(StorageFactory::new(engine, "/registry/example.pintle.dev"));
    let stores = Stores::start(Vec::new(), Vec::new(), &storage, &supervisor)?;
    stores.serve_custom(definition.start(&storage, &supervisor)?);
    stores.wait_ready().await.map_err(|status| status.message)?;

    let authorizer = authorizer(&flags)?;
    let metrics = Arc::new(Metrics::new()?);
    let tls_handshake_errors = metrics.tls_handshake_errors().clone();
    let open_api = OpenApi::new(Vec::new(), "v1.0.0").with_custom_definitions(definition);
    let discovery = Discovery::new(&[], Some(stores.clone()), |_, _| (1000, 100), String::new());
    let health = Arc::new(Health::new(supervisor));
    let mut front = Front::new(discovery, health, metrics.clone(), vec![stores.clone()]);
    front.documents = vec![Arc::new(OpenApiEndpoints::new(open_api))];
    let transports = Arc::new(Transports::new(Duration::from_secs(5), None, Dialer::default())?);
    let endpoints =
        ApiEndpoints::new(stores, authorizer.clone(), transports, metrics.clone(), stopping.clone());
    let mut server = GenericApiServer::new(endpoints, json!({"gitVersion": "v1.0.0"}));
    server.front = Some(front);
    let bundle = CaBundle::new("request-header", &read(&flags, "requestheader-client-ca-file")?)?;
    let front_proxy = FrontProxy::new(Arc::new(bundle), Vec::new(), RequestHeaders::standard());
    let anonymous = Anonymous { enabled: true, paths: vec!["/healthz".to_owned()] };
    let authenticator = Union { front_proxy: Some(front_proxy), anonymous, ..Union::default() };
    let mut filters = ChainConfig::new(metrics, Arc::new(authenticator), authorizer);
    filters.request_headers = RequestHeaders::standard();
    let handler = Arc::new(server).into_handler(filters);
    let pair = CertificatePair {
        name: "the serving certificate".to_owned(),
        certificate: read(&flags, "tls-cert-file")?.into(),
        key: read(&flags, "tls-private-key-file")?.into(),
    };
    let content = TlsContent { certificate: &pair, sni: &[], client_authorities: &[] };
    let tls = Arc::new(ServingTls::new(&TlsSettings::default(), &content)?);
    let serving = ServingConfig::new(tls, stopping.clone(), tls_handshake_errors);
    let listener = TcpListener::bind(text(&flags, "listen")).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        // The first process of a container ignores signals that it does not handle.
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        stop.send_replace(true);
    });
    serve(listener, serving, handler, stopping).await;
    Ok(())
}

/// The kind: a flunder has a size, and columns that kubectl shows.
fn flunders() -> Value {
    let size = json!({"type": "integer", "minimum": 1, "default": 1, "description": "How large it is."});
    let spec = json!({"type": "object", "properties": {"size": size}});
    let schema = json!({"type": "object", "description": "A flunder.", "properties": {"spec": spec}});
    json!({
        "metadata": {"name": "flunders.example.pintle.dev", "uid": "flunders"},
        "spec": {
            "group": "example.pintle.dev",
            "scope": "Namespaced",
            "names": {"plural": "flunders", "kind": "Flunder", "shortNames": ["fl"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }],
        },
    })
}

async fn storage(flags: &ArgMatches) -> Result<Arc<dyn Storage>, Box<dyn Error>> {
    Ok(match flags.get_one::<String>("etcd-servers") {
        Some(server) => {
            let options = EtcdOptions::new(std::slice::from_ref(server), "/registry/".to_owned());
            Arc::new(EtcdStorage::open(options).await?)
        }
        None => Arc::new(MemoryStorage::new()),
    })
}

/// Delegates authorization to the cluster.
fn authorizer(flags: &ArgMatches) -> Result<Arc<dyn Authorizer>, Box<dyn Error>> {
    let configuration = WebhookConfiguration::delegated(text(flags, "authorization-kubeconfig"));
    let metrics = Arc::new(AuthorizationMetrics::new("extension-server")?);
    Ok(Arc::new(WebhookAuthorizer::new("delegated".to_owned(), configuration, metrics, &Dialer::default())?))
}

fn text<'a>(flags: &'a ArgMatches, name: &str) -> &'a str {
    flags.get_one::<String>(name).map(String::as_str).unwrap_or_default()
}

fn read(flags: &ArgMatches, name: &str) -> Result<String, Box<dyn Error>> {
    let path = text(flags, name);
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}").into())
}
