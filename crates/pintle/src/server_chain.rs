//! The chain of servers: aggregator → kube API server → API extensions → not found, over one store.

use crate::{
    authentication::{Authentication, OwnTokens},
    auto_registration::auto_registration,
    completed_config::CompletedConfig,
    component_statuses::ComponentStatuses,
    enablement::{self, Enabled},
    flow_control::{self, FlowControlParts},
    openid_endpoints::OpenIdEndpoints,
    peer_parts::PeerParts,
    process_limits,
    run_error::RunError,
    storage_factory::warn_of_unused_overrides,
};
use pintle_aggregator::{AutoRegistration, AvailabilityMetrics, ProxyHandler, RemoteAvailability};
use pintle_apiextensions::ApiExtensions;
use pintle_apiserver::{
    base::{handler::Handler, negotiation::MediaTypes},
    discovery::Discovery,
    endpoints::ApiEndpoints,
    filters::ChainConfig,
    openapi_endpoints::OpenApiEndpoints,
    registry::Stores,
    server::{Front, GenericApiServer, HostLogs, PlainEndpoints, Profiles, VerbositySetter},
};
use pintle_controller::WorkQueueMetrics;
use pintle_feature_gates::Gate;
use pintle_logs::{Levels, Verbosity};
use pintle_machinery::{GroupResource, ValueExt};
use pintle_openapi::OpenApi;
use pintle_peer_proxy::{Forwarder, Sources};
use pintle_registry::{Resource, StorageVersionManager};
use std::sync::Arc;

/// The servers, not yet running: their parts are started by the post-start hooks.
pub(crate) struct ServerChain {
    pub(crate) config: CompletedConfig,
    pub(crate) stores: ChainStores,
    /// The handler of all requests.
    pub(crate) handler: Handler,
    /// The server of custom resources.
    pub(crate) api_extensions: Arc<ApiExtensions>,
    /// The controller that registers API services; `None` when they are disabled.
    pub(crate) auto_registration: Option<Arc<AutoRegistration>>,
    /// The controller of the availability of API services; `None` when they are disabled.
    pub(crate) remote_availability: Option<Arc<RemoteAvailability>>,
    /// Flow control; `None` when it is disabled.
    pub(crate) flow_control: Option<FlowControlParts>,
    pub(crate) authentication: Authentication,
    pub(crate) peers: PeerParts,
    /// The publication of the versions in which objects are stored; `None` without it.
    pub(crate) storage_versions: Option<Arc<StorageVersionManager>>,
    /// The metrics of the work queues of controllers.
    pub(crate) queues: WorkQueueMetrics,
}

/// The stores of the servers.
pub(crate) struct ChainStores {
    pub(crate) aggregator: Arc<Stores>,
    pub(crate) kube: Arc<Stores>,
    pub(crate) extensions: Arc<Stores>,
}

impl ChainStores {
    /// Starts the watch caches of all resources.
    fn start(config: &CompletedConfig) -> Result<ChainStores, RunError> {
        let kube_resources = kube_resources(config);
        let kube = start_stores(config, kube_resources, pintle_api::internal_resources(), None)?;
        // Admission reads namespaces, policies and webhooks, whatever the server of the object.
        let beside = Some(kube.clone());
        let extensions = start_stores(config, pintle_apiextensions::resources(), Vec::new(), beside.clone())?;
        // Policies of built-in kinds have custom resources as parameters.
        kube.look_up_in(&extensions);
        let aggregator = start_stores(config, pintle_aggregator::resources(), Vec::new(), beside)?;
        Ok(ChainStores { aggregator, kube, extensions })
    }

    /// The watch caches that the proxy to other servers follows.
    pub(crate) fn peer_sources(&self) -> Sources {
        let cacher = |stores: &Stores, group: &str, resource: &str| {
            stores.store(&GroupResource::new(group, resource)).ok().map(|store| store.cacher().clone())
        };
        Sources {
            leases: cacher(&self.kube, "coordination.k8s.io", "leases"),
            definitions: cacher(&self.extensions, "apiextensions.k8s.io", "customresourcedefinitions"),
            api_services: cacher(&self.aggregator, "apiregistration.k8s.io", "apiservices"),
        }
    }

    /// The stores of all servers, in the order of the chain.
    pub(crate) fn all(&self) -> Vec<Arc<Stores>> {
        vec![self.aggregator.clone(), self.kube.clone(), self.extensions.clone()]
    }
}

/// The declarations of the built-in kinds.
fn kube_resources(config: &CompletedConfig) -> Vec<Resource> {
    let tokens = &config.loaded.tokens;
    let mut resources = pintle_api::resources(&pintle_api::Config {
        service_network: config.loaded.service_network.clone(),
        event_ttl: config.options().event_ttl,
        component_statuses: Arc::new(ComponentStatuses::new(&config.engines)),
        token_issuer: tokens.issuer.clone(),
        token_reviewer: tokens.reviewer.clone(),
        rbac: config.loaded.authorization.rbac.clone(),
        kubelets: config.options().kubelet.addresses(),
        pod_log_metrics: Some(config.loaded.kubelets.log_metrics.clone()),
    });
    resources.extend(pintle_api::resources_off_by_default());
    resources
}

fn start_stores(
    config: &CompletedConfig,
    declared: Vec<Resource>,
    stored_only: Vec<Resource>,
    beside: Option<Arc<Stores>>,
) -> Result<Arc<Stores>, RunError> {
    let Enabled { served, mut internal } =
        enablement::enabled(declared, &config.resource_config, config.options(), &config.loaded.gates)
            .map_err(RunError::Options)?;
    internal.extend(stored_only);
    Ok(Stores::start_beside(beside, served, internal, &config.storage, &config.supervisor)?)
}

impl ServerChain {
    /// Creates the servers.
    pub(crate) fn new(config: CompletedConfig) -> Result<ServerChain, RunError> {
        let stores = ChainStores::start(&config)?;
        let all_stores = stores.all();
        config.loaded.admission.rest_mapper.set_stores(all_stores.clone());
        let outbound = config.loaded.aggregation.outbound.clone();
        let queues = WorkQueueMetrics::new()?;
        config.metrics.register(vec![Box::new(queues.clone())])?;
        let api_extensions =
            ApiExtensions::new(&stores.extensions, &config.storage, &config.supervisor, outbound, &queues)
                .map_err(|status| RunError::Assemble(status.message))?;
        let api_extensions = Arc::new(api_extensions);
        config.metrics.register(api_extensions.metrics())?;
        let flow_control = flow_control::build(
            config.options(),
            &all_stores,
            &stores.kube,
            &config.metrics,
            &config.supervisor,
            &config.stopping,
        )?;
        warn_of_unused_overrides(config.options(), &all_stores);
        let authentication = authentication(&config, &stores)?;
        let auto_registration =
            auto_registration(&stores.aggregator, &[&stores.kube, &stores.extensions], &api_extensions);
        let remote_availability = match &auto_registration {
            Some(_) => Some(remote_availability(&config, &stores.aggregator)?),
            None => None,
        };
        if let Some(controller) = &auto_registration {
            controller.measure(&queues);
        }
        if let Some(controller) = &remote_availability {
            controller.measure(&queues);
        }
        let peers = PeerParts::new(&config)?;
        let mut front =
            front(&config, &stores, &api_extensions, flow_control.as_ref(), auto_registration.is_some())?;
        front = with_peers(front, &config, &peers)?;
        let extensions = server(&config, &stores.extensions, None, None);
        let kube = server(&config, &stores.kube, Some(extensions), None);
        let aggregator = server(&config, &stores.aggregator, Some(kube), Some(front));
        let storage_versions = storage_versions(&config, &stores)?;
        let options = config.options();
        let mut filters = ChainConfig::new(
            config.metrics.clone(),
            authentication.authenticator.clone(),
            config.loaded.authorization.authorizer(),
        );
        filters.auditor = config.loaded.auditor.clone();
        filters.request_headers = authentication.request_headers.clone();
        filters.transport = config.loaded.transport.clone();
        filters.constrained_impersonation = config.loaded.gates.enabled(Gate::ConstrainedImpersonation);
        filters.request_timeout = options.request_timeout;
        filters.flow_control = flow_control.as_ref().map(|parts| parts.flow_control.clone());
        filters.storage_versions = storage_versions.clone();
        filters.tracing = options.tracing.config_file.is_some();
        filters.max_requests_in_flight = options.max_requests_inflight;
        filters.max_mutating_requests_in_flight = options.max_mutating_requests_inflight;
        filters.max_long_running = options.max_long_running.unwrap_or_else(process_limits::max_long_running);
        let handler = aggregator.into_handler(filters);
        Ok(ServerChain {
            config,
            stores,
            handler,
            api_extensions,
            auto_registration,
            remote_availability,
            flow_control,
            authentication,
            peers,
            storage_versions,
            queues,
        })
    }
}

/// The manager of the storage versions of all built-in resources of the chain; `None` while its gate is closed.
///
/// # Errors
/// Those of [`enablement::publishes_storage_versions`].
fn storage_versions(
    config: &CompletedConfig,
    stores: &ChainStores,
) -> Result<Option<Arc<StorageVersionManager>>, RunError> {
    let is_open = config.loaded.gates.enabled(Gate::StorageVersionAPI);
    let publishes = enablement::publishes_storage_versions(&config.resource_config, is_open);
    if !publishes.map_err(RunError::Options)? {
        return Ok(None);
    }
    let infos = stores.all().iter().flat_map(|stores| stores.resource_infos()).collect();
    Ok(Some(Arc::new(StorageVersionManager::new(infos))))
}

/// The controller of the availability of API services with a service.
fn remote_availability(
    config: &CompletedConfig,
    stores: &Arc<Stores>,
) -> Result<Arc<RemoteAvailability>, RunError> {
    let metrics = AvailabilityMetrics::new()?;
    config.metrics.register(vec![Box::new(metrics.clone())])?;
    let api_services = &config.loaded.aggregation.api_services;
    Ok(Arc::new(RemoteAvailability::new(stores, api_services, metrics)))
}

/// The authentication of requests and of `TokenReview`s.
fn authentication(config: &CompletedConfig, stores: &ChainStores) -> Result<Authentication, RunError> {
    let (options, tokens) = (config.options(), &config.loaded.tokens);
    let own = OwnTokens {
        authenticators: tokens.authenticators(options, &stores.kube, &config.metrics)?,
        issuers: options.service_accounts.issuers.clone(),
        audiences: options.service_accounts.audiences().to_vec(),
    };
    let authentication = Authentication::new(
        options,
        &config.loaded.secure_serving,
        &config.metrics,
        own,
        &config.loaded.egress.selector,
    )?;
    tokens.reviewer.set_authenticator(authentication.tokens.clone());
    Ok(authentication)
}

/// One server of the chain.
fn server(
    config: &CompletedConfig,
    stores: &Arc<Stores>,
    delegate: Option<Arc<GenericApiServer>>,
    front: Option<Front>,
) -> Arc<GenericApiServer> {
    let (gates, management) = (&config.loaded.gates, &config.options().management);
    let mut endpoints = ApiEndpoints::new(
        stores.clone(),
        config.loaded.authorization.authorizer(),
        config.loaded.kubelets.transports.clone(),
        config.metrics.clone(),
        config.lifecycle.ending(),
    );
    endpoints.admission = config.loaded.admission.chain.clone();
    endpoints.unsafe_deletes = gates.enabled(Gate::AllowUnsafeMalformedObjectDeletion);
    endpoints.has_shards = gates.enabled(Gate::ShardedListAndWatch);
    endpoints.media_types = MediaTypes::of_resources(gates.enabled(Gate::CBORServingAndStorage));
    endpoints.min_request_timeout = management.min_request_timeout;
    endpoints.delete_collection_workers = management.delete_collection_workers;
    let mut server = GenericApiServer::new(endpoints, config.version());
    (server.delegate, server.front) = (delegate, front);
    Arc::new(server)
}

/// Sets the verbosity of the log by the text of a request.
pub(crate) fn verbosity_setter(levels: Levels) -> VerbositySetter {
    Arc::new(move |text| {
        let verbosity: Verbosity = Verbosity::of_request(text)?;
        levels.set_verbosity(verbosity);
        Ok(verbosity.0.to_string())
    })
}

/// The endpoints that cover the whole chain.
fn front(
    config: &CompletedConfig,
    stores: &ChainStores,
    api_extensions: &ApiExtensions,
    flow_control: Option<&FlowControlParts>,
    has_api_services: bool,
) -> Result<Front, RunError> {
    let (options, address) = (config.options(), config.external_address());
    let all_stores = stores.all();
    let resources: Vec<_> = all_stores.iter().flat_map(|stores| stores.resources().iter().cloned()).collect();
    let version = config.version();
    let server_version = version.str_at("gitVersion");
    let emulated = format!("{}.{}", version.str_at("emulationMajor"), version.str_at("emulationMinor"));
    let declared = resources.iter().map(|resource| resource.resource.clone()).collect();
    let aggregation = &config.loaded.aggregation;
    let mut open_api = OpenApi::new(declared, server_version)
        .with_info_version(emulated)
        .with_custom_definitions(api_extensions.definitions());
    let mut discovery = Discovery::new(
        &resources,
        Some(stores.extensions.clone()),
        pintle_aggregator::group_priority,
        address.clone(),
    );
    if has_api_services {
        open_api = open_api.with_remote_documents(aggregation.open_api.clone());
        discovery = discovery.with_api_services(aggregation.discovery.clone());
    }
    let mut documents: Vec<Arc<dyn PlainEndpoints>> = vec![Arc::new(OpenApiEndpoints::new(open_api))];
    documents.extend(flow_control.map(FlowControlParts::endpoints));
    if let Some(open_id) = config.loaded.tokens.open_id(options, &address).map(OpenIdEndpoints) {
        documents.push(Arc::new(open_id));
    }
    let (gates, debugging) = (&config.loaded.gates, &options.debugging);
    let mut front = Front::new(discovery, config.health.clone(), config.metrics.clone(), all_stores);
    front.storage_sizes = config.storage_sizes.clone();
    front.profiles = debugging.profiling.then(Profiles::new);
    front.verbosity = debugging.profiling.then(|| verbosity_setter(options.log_levels.clone()));
    front.flags = gates.enabled(Gate::ComponentFlagz).then(|| debugging.flags.clone());
    front.has_statusz = gates.enabled(Gate::ComponentStatusz);
    front.pages = MediaTypes::of_pages(gates.enabled(Gate::CBORServingAndStorage));
    front.host_logs = debugging.enable_logs_handler.then(|| HostLogs::new("/var/log"));
    front.count_objects = !options.etcd_count_metric_poll_period.is_zero();
    front.documents = documents;
    front.remote = Some(Arc::new(ProxyHandler {
        api_services: aggregation.api_services.clone(),
        open_api: aggregation.open_api.clone(),
        rejects_redirects: options.aggregation.reject_forwarding_redirect,
    }));
    Ok(front)
}

/// The endpoints, with what other servers of the cluster serve.
fn with_peers(mut front: Front, config: &CompletedConfig, peers: &PeerParts) -> Result<Front, RunError> {
    if peers.leases.is_some() {
        front.discovery = front.discovery.with_peers(peers.proxy.clone().map(|proxy| proxy as _));
    }
    config.metrics.register(front.discovery.metrics())?;
    front.peers = peers.proxy.clone().map(|proxy| Arc::new(Forwarder(proxy)) as _);
    Ok(front)
}
