//! Assembles the chain of servers.

use crate::{
    Options,
    authorization::Authorization,
    auto_registration::{auto_registration, is_complete},
    enablement::{self, Enabled},
    flow_control::{self, FlowControlParts},
    hooks::{Hooks, Parts},
    openapi_endpoints::OpenApiEndpoints,
    openid_endpoints::OpenIdEndpoints,
    run_error::RunError,
    tokens::Tokens,
};
use pintle_admission::AdmissionChain;
use pintle_aggregator::AutoRegistration;
use pintle_api::core::service::ServiceNetwork;
use pintle_apiextensions::ApiExtensions;
use pintle_apiserver::{
    discovery::Discovery,
    endpoints::ApiEndpoints,
    health::{CheckScope, Health},
    metrics::{Metrics, StorageSizes},
    registry::{StorageFactory, Stores},
    server::{Front, GenericApiServer, PlainEndpoints},
};
use pintle_openapi::OpenApi;
use pintle_supervisor::Supervisor;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};

/// The assembled chain, and the parts that the process uses directly.
pub(crate) struct Chain {
    pub(crate) server: Arc<GenericApiServer>,
    pub(crate) stores: Arc<Stores>,
    pub(crate) all_stores: Vec<Arc<Stores>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    pub(crate) supervisor: Supervisor,
    /// The post-start hooks.
    pub(crate) hooks: Hooks,
    pub(crate) network: Arc<ServiceNetwork>,
    /// The server of custom resources.
    pub(crate) api_extensions: ApiExtensions,
    /// The controller that registers API services; `None` when they are disabled.
    pub(crate) auto_registration: Option<Arc<AutoRegistration>>,
    /// The size of the stored data in bytes, for the metrics.
    pub(crate) storage_sizes: Arc<StorageSizes>,
    /// Flow control; `None` when it is disabled.
    pub(crate) flow_control: Option<FlowControlParts>,
}

/// The parts that the chain is built from.
pub(crate) struct Foundation<'a> {
    pub(crate) options: &'a Options,
    pub(crate) port: u16,
    pub(crate) network: Arc<ServiceNetwork>,
    pub(crate) storage: &'a Arc<StorageFactory>,
    pub(crate) authorization: &'a Authorization,
    pub(crate) tokens: &'a Tokens,
    pub(crate) health: Arc<Health>,
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) shutdown: &'a tokio::sync::watch::Receiver<bool>,
}

/// Builds aggregator → kube API server → API extensions over one store.
pub(crate) fn build(foundation: Foundation<'_>) -> Result<Chain, RunError> {
    let Foundation { options, port, network, storage, authorization, tokens, health, supervisor, shutdown } =
        foundation;
    let metrics = Arc::new(Metrics::new().map_err(|error| RunError::Assemble(error.to_string()))?);
    let noted = metrics.set_build_info(&version());
    noted.map_err(|error| RunError::Assemble(error.to_string()))?;
    let resource_config = enablement::resource_config(&options.runtime_config).map_err(RunError::Options)?;
    let start = |declared, stored_only: Vec<_>| {
        let Enabled { served, mut internal } = enablement::enabled(declared, &resource_config);
        internal.extend(stored_only);
        Stores::start(served, internal, storage, supervisor).map_err(RunError::Assemble)
    };
    let config = pintle_api::Config {
        service_network: network.clone(),
        event_ttl: options.event_ttl,
        token_issuer: tokens.issuer.clone(),
        token_reviewer: tokens.reviewer.clone(),
        rbac: authorization.rbac.clone(),
    };
    let mut built_in = pintle_api::resources(&config);
    built_in.extend(pintle_api::resources_off_by_default());
    let kube = start(built_in, pintle_api::internal_resources())?;
    let Enabled { served, internal } =
        enablement::enabled(pintle_apiextensions::resources(), &resource_config);
    // Admission of custom resources reads namespaces.
    let beside = Some(kube.clone());
    let extensions =
        Stores::start_beside(beside, served, internal, storage, supervisor).map_err(RunError::Assemble)?;
    let api_extensions = ApiExtensions::start(&extensions, storage, supervisor, shutdown)
        .map_err(|status| RunError::Assemble(status.message))?;
    let aggregator = start(pintle_aggregator::resources(), Vec::new())?;
    let all_stores = vec![aggregator.clone(), kube.clone(), extensions.clone()];
    let unsafe_deletes = options.feature_gates.allow_unsafe_malformed_object_deletion;
    let admission =
        AdmissionChain::configured(&options.admission.enable_plugins, &options.admission.disable_plugins);
    let admission = admission.map_err(RunError::Options)?;
    let server = |stores: &Arc<Stores>, delegate, front| {
        Arc::new(GenericApiServer {
            endpoints: ApiEndpoints {
                stores: stores.clone(),
                admission: admission.clone(),
                authorizer: authorization.authorizer(),
                unsafe_deletes,
                shutdown: shutdown.clone(),
            },
            version: version(),
            delegate,
            front,
        })
    };
    let resources: Vec<_> = all_stores.iter().flat_map(|stores| stores.resources().iter().cloned()).collect();
    let address = SocketAddr::new(options.advertised(), port).to_string();
    let open_id = tokens.open_id(options, &address).map(OpenIdEndpoints);
    let ready = all_stores.clone();
    health.add(
        "informer-sync",
        CheckScope::ReadyOnly,
        Arc::new(move || match ready.iter().all(|stores| stores.is_ready()) {
            true => Ok(()),
            false => Err("caches are not filled yet".to_owned()),
        }),
    );
    let flow_control = flow_control::build(options, &all_stores, &kube, &metrics, supervisor, shutdown)?;
    let auto_registration = auto_registration(&aggregator, &[&kube, &extensions], &api_extensions);
    let parts = Parts { flow_control: flow_control.is_some(), api_services: auto_registration.is_some() };
    let mut hooks = Hooks::new(&health, &parts);
    if let Some(registration) = &auto_registration {
        health.add("autoregister-completion", CheckScope::Always, is_complete(registration));
    }
    hooks.add_documents(&health);
    let stopping = shutdown.clone();
    health.add(
        "shutdown",
        CheckScope::ReadyOnly,
        Arc::new(move || match *stopping.borrow() {
            false => Ok(()),
            true => Err("process is shutting down".to_owned()),
        }),
    );
    let server_version = version().get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let declared = resources.iter().map(|resource| resource.resource.clone()).collect();
    let open_api =
        OpenApi::new(declared, server_version).with_custom_definitions(api_extensions.definitions());
    let storage_sizes = Arc::new(StorageSizes::default());
    let mut documents: Vec<Arc<dyn PlainEndpoints>> = vec![Arc::new(OpenApiEndpoints(open_api))];
    documents.extend(flow_control.as_ref().map(FlowControlParts::endpoints));
    if let Some(open_id) = open_id {
        documents.push(Arc::new(open_id));
    }
    let front = Front {
        discovery: Discovery::new(
            &resources,
            Some(extensions.clone()),
            pintle_aggregator::group_priority,
            address,
        ),
        health: health.clone(),
        metrics: metrics.clone(),
        stores: all_stores.clone(),
        storage_sizes: storage_sizes.clone(),
        count_objects: !options.etcd_count_metric_poll_period.is_zero(),
        documents,
    };
    let extensions = server(&extensions, None, None);
    let kube_server = server(&kube, Some(extensions), None);
    let server = server(&aggregator, Some(kube_server), Some(front));
    let registered = metrics.register(api_extensions.metrics());
    registered.map_err(|error| RunError::Assemble(error.to_string()))?;
    Ok(Chain {
        supervisor: supervisor.clone(),
        server,
        stores: kube,
        all_stores,
        metrics,
        health,
        hooks,
        network,
        api_extensions,
        auto_registration,
        storage_sizes,
        flow_control,
    })
}

/// The response of `/version`: the served API version, and the build.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": concat!("v1.36.2+pintle-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
    })
}

/// The architecture by Go's name, which clients compare.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
