//! The post-start hooks of the server, one line each: informers, controllers and repair loops.
//!
//! To add a controller of the server's own objects, write its file in `controlplane` and add one line to [`register`].
//! The order of the lines is the order of kube-apiserver's health reports, under whose names the hooks are; the names
//! after a hook's name are the hooks that start before it.

use crate::{
    EndpointReconcilerType,
    auto_registration::is_complete,
    dynamic_files::{self, Watched},
    peer_parts,
    run_error::RunError,
    server_chain::ServerChain,
};
use pintle_api::core::{master_leases, service::ip_addresses};
use pintle_apiserver::{
    health::CheckScope,
    post_start_hooks::{HookContext, PostStartHooks},
    registry::Stores,
    serving::stopped,
};
use pintle_controlplane::{
    ClusterAuthenticationInfo, Controller, CoordinatedLeaderElection, EndpointReconciler, FlowControlObjects,
    IdentityLease, IdentityLeaseGarbageCollector, KubernetesService, LegacyTokenTracking, MasterLeases,
    RepairedCaches, ServiceCidr, ServiceIpRepair, StorageVersions, SystemNamespaces,
};
use pintle_feature_gates::Gate;
use pintle_machinery::{GroupResource, Status};
use pintle_peer_proxy::PeerEndpoint;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// The hooks after which objects can be read and written: the authorizers, custom resources and caches are complete.
const CACHES: &[&str] = &["generic-apiserver-start-informers", "crd-informer-synced", "storage-readiness"];
/// The hook that publishes storage versions, when there is a manager of them.
const STORAGE_VERSIONS: &str = "built-in-resources-storage-version-updater";
/// The hooks after which the server writes objects, when there is a manager of storage versions.
const PUBLISHED: &[&str] = &[STORAGE_VERSIONS];

/// Adds the hooks and the other health checks of the chain.
pub(crate) fn register(server: &Arc<ServerChain>) -> Result<PostStartHooks, RunError> {
    let config = &server.config;
    let health = &config.health;
    let kubernetes_service = kubernetes_service(server)?;
    let mut hooks = Hooks {
        list: PostStartHooks::new(health.clone(), config.supervisor.clone(), config.stopping.clone()),
        server: server.clone(),
        // Objects that the manager of storage versions needs itself are written before: namespaces, and the identity
        // lease.
        writes: if server.storage_versions.is_some() { PUBLISHED } else { CACHES },
    };
    let caches = server.stores.all();
    health.add(
        "informer-sync",
        CheckScope::ReadyOnly,
        Arc::new(move || match caches.iter().all(|stores| stores.is_ready()) {
            true => Ok(()),
            false => Err("caches are not filled yet".to_owned()),
        }),
    );
    hooks.add_informers();
    hooks.controller("start-system-namespaces-controller", CACHES, SystemNamespaces);
    hooks.add_peers();
    hooks.add_servers_of_the_cluster()?;
    hooks.add_caches();
    hooks.add_bootstrap(kubernetes_service)?;
    hooks.add("aggregator-reload-proxy-client-cert", CACHES, reload_files);
    hooks.add_aggregator();
    let lifecycle = config.lifecycle.clone();
    health.add(
        "shutdown",
        CheckScope::ReadyOnly,
        Arc::new(move || match lifecycle.has_begun() {
            false => Ok(()),
            true => Err("process is shutting down".to_owned()),
        }),
    );
    Ok(hooks.list)
}

/// The controller of the service `kubernetes` and the addresses behind it.
fn kubernetes_service(server: &ServerChain) -> Result<KubernetesService, RunError> {
    let config = &server.config;
    Ok(KubernetesService {
        service_network: config.loaded.service_network.clone(),
        advertise_address: config.options().advertised(),
        secure_port: config.loaded.address.port(),
        node_port: config.options().management.node_port(),
        exclusive: !config.storage.is_shared(),
        endpoint_reconciler: endpoint_reconciler(server)?,
    })
}

/// The list of hooks, and the server whose parts they start.
struct Hooks {
    list: PostStartHooks,
    server: Arc<ServerChain>,
    /// The hooks after which the server writes objects.
    writes: &'static [&'static str],
}

impl Hooks {
    /// Adds the hooks by which the parts of the server follow objects.
    fn add_informers(&mut self) {
        let server = self.server.clone();
        if server.config.options().encryption_provider_config_automatic_reload {
            self.add("start-encryption-provider-config-automatic-reload", &[], reload_encryption);
        }
        self.check("start-apiserver-admission-initializer", &[]);
        self.add("generic-apiserver-start-informers", &[], start_informers);
        if server.flow_control.is_some() {
            self.add(
                "priority-and-fairness-config-consumer",
                &["priority-and-fairness-config-producer"],
                start_flow_control_consumer,
            );
            self.add(
                "priority-and-fairness-filter",
                &["priority-and-fairness-config-consumer"],
                start_flow_control_filter,
            );
        }
        self.add("storage-object-count-tracker-hook", CACHES, watch_storage_sizes);
        self.add("start-apiextensions-informers", &[], start_definition_informer);
        self.add("start-apiextensions-controllers", &[], start_definition_controllers);
        self.add("crd-informer-synced", &["start-apiextensions-informers"], wait_for_definitions);
    }

    /// Adds the hooks of the other servers of the cluster that this one forwards to.
    fn add_peers(&mut self) {
        let server = self.server.clone();
        if let Some(leases) = server.peers.leases.clone() {
            // Nobody else reads a store of the server's own. Requests of other servers are authorized like all others.
            match !server.config.storage.is_shared() {
                true => self.check("peer-endpoint-reconciler-controller", CACHES),
                false => self.leaving_controller(
                    "peer-endpoint-reconciler-controller",
                    &["rbac/bootstrap-roles"],
                    PeerEndpoint(leases),
                ),
            }
        }
        if server.peers.proxy.is_some() {
            self.add("mixed-version-proxy-handler", CACHES, start_peer_proxy);
            // The resources of this server are known without asking it.
            self.check("local-discovery-cache-sync", CACHES);
            self.add("peer-discovery-workers", &["mixed-version-proxy-handler"], start_peer_discovery);
        }
    }

    /// Adds the controllers by which the servers of the cluster know each other.
    fn add_servers_of_the_cluster(&mut self) -> Result<(), RunError> {
        let server = self.server.clone();
        let config = &server.config;
        let exclusive = !config.storage.is_shared();
        let cluster_authentication = ClusterAuthenticationInfo {
            data: config.loaded.secure_serving.cluster_authentication(),
            exclusive,
        };
        let peer_address = peer_parts::address(config)?.to_string();
        self.controller("start-cluster-authentication-info-controller", self.writes, cluster_authentication);
        if config.loaded.gates.enabled(Gate::APIServerIdentity) {
            self.controller(
                "start-kube-apiserver-identity-lease-controller",
                CACHES,
                IdentityLease {
                    hostname: config.options().hostname(),
                    exclusive,
                    peer_address: server.peers.leases.is_some().then_some(peer_address),
                },
            );
            self.controller(
                "start-kube-apiserver-identity-lease-garbage-collector",
                self.writes,
                IdentityLeaseGarbageCollector,
            );
        }
        if config.loaded.gates.enabled(Gate::CoordinatedLeaderElection) {
            let timers = config.options().leadership.timers;
            match timers.check() {
                Ok(()) => self.controller(
                    "start-kube-apiserver-coordinated-leader-election-controller",
                    self.writes,
                    CoordinatedLeaderElection::new(&config.options().hostname(), timers),
                ),
                Err(error) => tracing::error!("this server elects no leaders: {error}"),
            }
        }
        Ok(())
    }

    /// Adds the hooks that create and repair the objects that a cluster begins with.
    fn add_bootstrap(&mut self, kubernetes_service: KubernetesService) -> Result<(), RunError> {
        let server = self.server.clone();
        let config = &server.config;
        let service_network = &config.loaded.service_network;
        self.controller("start-legacy-token-tracking-controller", self.writes, LegacyTokenTracking);
        let mut repair = ServiceIpRepair::new(service_network.clone(), &config.options().hostname())?;
        config.metrics.register(repair.collectors())?;
        if let Some(caches) = repaired_caches(&server.stores.kube) {
            repair = repair.following(caches, &server.queues);
        }
        self.controller("start-service-ip-repair-controllers", self.writes, repair);
        self.add("rbac/bootstrap-roles", self.writes, bootstrap_roles);
        self.add("scheduling/bootstrap-system-priority-classes", self.writes, bootstrap_priority_classes);
        if server.flow_control.is_some() {
            self.controller("priority-and-fairness-config-producer", self.writes, FlowControlObjects);
        }
        // The service gets its address from the block.
        self.leaving_controller(
            "bootstrap-controller",
            &["start-kubernetes-service-cidr-controller"],
            kubernetes_service,
        );
        self.controller(
            "start-kubernetes-service-cidr-controller",
            self.writes,
            ServiceCidr { service_network: service_network.clone() },
        );
        Ok(())
    }

    /// Adds the hooks of the aggregator, if it serves API services, and of the storage versions.
    fn add_aggregator(&mut self) {
        let server = self.server.clone();
        if let Some(registration) = &server.auto_registration {
            self.add("start-kube-aggregator-informers", CACHES, follow_api_services);
            self.check("apiservice-status-local-available-controller", CACHES);
            // Later than what the service network may depend on, so that a start makes nothing unavailable.
            self.add(
                "apiservice-status-remote-available-controller",
                &["start-kube-aggregator-informers", "bootstrap-controller", "rbac/bootstrap-roles"],
                start_remote_availability,
            );
            self.check("apiservice-registration-controller", CACHES);
            self.check("apiservice-wait-for-first-sync", CACHES);
            self.add(
                "apiservice-discovery-controller",
                &["start-kube-aggregator-informers"],
                start_remote_discovery,
            );
            self.add_storage_versions();
            self.add("kube-apiserver-autoregistration", &["bootstrap-controller"], register_api_services);
            server.config.health.add(
                "autoregister-completion",
                CheckScope::Always,
                is_complete(registration),
            );
            self.add(
                "apiservice-openapi-controller",
                &["start-kube-aggregator-informers"],
                start_remote_open_api,
            );
            self.check("apiservice-openapiv3-controller", CACHES);
        } else {
            self.add_storage_versions();
        }
    }

    /// Adds a hook that starts a part of the server.
    fn add<Starting>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        start: impl Fn(Arc<ServerChain>, HookContext) -> Starting + Send + Sync + 'static,
    ) where
        Starting: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let server = self.server.clone();
        self.list.add(name, after, move |hook| start(server.clone(), hook));
    }

    /// Adds the hook that waits for the caches; a check of its own is behind a gate.
    fn add_caches(&mut self) {
        let (name, after) = ("storage-readiness", &["generic-apiserver-start-informers"]);
        if self.server.config.loaded.gates.enabled(Gate::WatchCacheInitializationPostStartHook) {
            return self.add(name, after, wait_for_caches);
        }
        let server = self.server.clone();
        self.list.add_unreported(name, after, move |hook| wait_for_caches(server.clone(), hook));
    }

    /// Adds a controller of the server's own objects.
    fn controller<C: Controller>(&mut self, name: &'static str, after: &[&'static str], controller: C) {
        let stopped = self.server.config.lifecycle.clone();
        self.run_controller(name, after, controller, move || stopped.stopped());
    }

    /// Adds a controller that withdraws this server from the others before the port closes.
    fn leaving_controller<C: Controller>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        controller: C,
    ) {
        let lifecycle = self.server.config.lifecycle.clone();
        self.run_controller(name, after, controller, move || lifecycle.leaving());
    }

    fn run_controller<C: Controller>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        controller: C,
        until: impl Fn() -> watch::Receiver<bool> + Send + Sync + 'static,
    ) {
        let controller = Arc::new(controller);
        let until = Arc::new(until);
        self.add(name, after, move |server, hook| {
            let (controller, registry) = (controller.clone(), server.stores.kube.clone());
            let until = until.clone();
            async move {
                pintle_controlplane::start(&*controller, &*registry).await?;
                let stopping = until();
                hook.spawn_restarting(move || {
                    let (controller, registry) = (controller.clone(), registry.clone());
                    let mut stopping = stopping.clone();
                    async move {
                        pintle_controlplane::run(&*controller, &*registry, stopped(&mut stopping)).await;
                    }
                });
                Ok(())
            }
        });
    }

    /// Adds the hook that publishes storage versions. Its check passes when all of them are published; until then, the
    /// server serves reads, and writes of the other resources.
    fn add_storage_versions(&mut self) {
        let Some(manager) = self.server.storage_versions.clone() else { return };
        let hostname = self.server.config.options().hostname();
        let publisher = Arc::new(StorageVersions { manager: manager.clone(), hostname });
        let server = self.server.clone();
        let start = move |hook: HookContext| {
            let (publisher, registry) = (publisher.clone(), server.stores.kube.clone());
            async move {
                publisher.update(&*registry).await;
                let mut stopping = hook.stopping().clone();
                hook.spawn(async move {
                    tokio::select! {
                        () = publisher.run(&*registry) => {}
                        () = stopped(&mut stopping) => {}
                    }
                });
                Ok(())
            }
        };
        // The entry of a server without a lease is collected.
        let after = &["start-kube-apiserver-identity-lease-controller"];
        self.list.add_unfinished(STORAGE_VERSIONS, after, start, move || manager.is_completed());
    }

    /// Adds a hook of kube-apiserver that has nothing to start here.
    fn check(&mut self, name: &'static str, after: &[&'static str]) {
        self.list.add_check(name, after);
    }
}

/// The caches that the repair of cluster IPs follows; `None` when one of the resources is disabled.
fn repaired_caches(stores: &Stores) -> Option<RepairedCaches> {
    let cacher = |resource| stores.store(&resource).ok().map(|store| store.cacher().clone());
    Some(RepairedCaches {
        services: cacher(GroupResource::new("", "services"))?,
        ip_addresses: cacher(ip_addresses())?,
    })
}

/// Starts to feed the authorizers from the watch caches. [`wait_for_caches`] waits for them: a start that waits after it
/// has spawned tasks would spawn them once more when it is repeated.
async fn start_informers(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    server.config.loaded.authorization.start(&server.stores.kube, &hook);
    server.config.loaded.aggregation.follow_services(&server.stores.kube, &hook);
    Ok(())
}

/// Follows the definitions of custom resources, and serves these.
async fn start_definition_informer(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    server.api_extensions.start_informers(&hook);
    Ok(())
}

async fn start_definition_controllers(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    server.api_extensions.start_controllers(&hook);
    Ok(())
}

/// Waits until every definition that existed at the start is served, so that custom resources are served from the first
/// request on.
async fn wait_for_definitions(server: Arc<ServerChain>, _: HookContext) -> Result<(), Status> {
    server.api_extensions.wait_synced().await;
    Ok(())
}

/// Waits until the watch caches are filled and the authorizers know their contents, and starts the compaction of
/// history.
async fn wait_for_caches(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    let limit = server.config.options().management.storage_initialization_timeout;
    let stores = server.stores.all();
    let filled = async {
        for stores in &stores {
            stores.wait_ready().await?;
        }
        Ok::<(), Status>(())
    };
    tokio::pin!(filled);
    match timeout(limit.max(Duration::from_millis(1)), &mut filled).await {
        Ok(filled) => filled?,
        // Requests cannot be authorized from empty caches.
        Err(_) => {
            tracing::warn!(?limit, "the storage is not initialized in time; the server waits for it");
            filled.await?;
        }
    }
    server.config.loaded.authorization.wait_synced().await;
    let config = &server.config;
    let interval = config.options().etcd_compaction_interval;
    hook.join(config.engines.compact(interval, hook.supervisor(), hook.stopping()));
    Ok(())
}

async fn watch_storage_sizes(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    let config = &server.config;
    config.engines.watch_sizes(&config.storage_sizes, config.options(), hook.supervisor(), hook.stopping());
    Ok(())
}

/// Creates the default roles, with which the first request is authorized.
async fn bootstrap_roles(server: Arc<ServerChain>, _: HookContext) -> Result<(), Status> {
    pintle_controlplane::bootstrap_roles(&*server.stores.kube).await?;
    server.config.loaded.authorization.rbac.catch_up().await;
    Ok(())
}

async fn bootstrap_priority_classes(server: Arc<ServerChain>, _: HookContext) -> Result<(), Status> {
    pintle_controlplane::bootstrap_priority_classes(&*server.stores.kube).await
}

async fn start_flow_control_consumer(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    match &server.flow_control {
        Some(parts) => parts.start_consumer(&hook).await,
        None => Ok(()),
    }
}

async fn start_flow_control_filter(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    if let Some(parts) = &server.flow_control {
        parts.start_filter(&hook);
    }
    Ok(())
}

async fn reload_encryption(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    hook.join(server.config.loaded.encryption.watch_config(hook.supervisor(), hook.stopping()));
    Ok(())
}

/// Reloads certificates and configuration files when they change.
async fn reload_files(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    let config = &server.config.loaded;
    let (supervisor, stopping) = (hook.supervisor(), hook.stopping());
    let mut certificates = config.secure_serving.dynamic_files();
    certificates.extend(config.aggregation.dynamic_files());
    certificates.extend(server.peers.dynamic_files());
    certificates.push(config.kubelets.dynamic_files());
    let boxed = |files| Box::new(files) as Box<dyn Watched>;
    let mut files: Vec<_> = certificates.into_iter().map(boxed).collect();
    files.extend(config.admission.manifest_files().map(|files| Box::new(files) as Box<dyn Watched>));
    if let Some((config_file, task)) = server.authentication.config.follow(supervisor, stopping) {
        files.push(Box::new(config_file));
        hook.join([task]);
    }
    hook.join(dynamic_files::watch(files, supervisor, stopping));
    Ok(())
}

/// Follows the API services. [`pintle_aggregator::ApiServices`] has all of them once the hook has started.
async fn follow_api_services(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    let aggregation = &server.config.loaded.aggregation;
    aggregation.follow_api_services(&server.stores.aggregator, &hook)?;
    aggregation.api_services.wait_synced().await;
    Ok(())
}

/// Follows the other servers of the cluster, and waits until those that existed at the start are known.
async fn start_peer_proxy(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    if let Some(proxy) = &server.peers.proxy {
        proxy.start(&server.stores.peer_sources(), &hook);
        proxy.wait_synced().await;
    }
    Ok(())
}

async fn start_peer_discovery(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    if let Some(proxy) = &server.peers.proxy {
        proxy.start_discovery(&hook);
    }
    Ok(())
}

async fn start_remote_availability(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    if let Some(controller) = server.remote_availability.clone() {
        controller.start(&hook);
    }
    Ok(())
}

async fn start_remote_discovery(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    server.config.loaded.aggregation.discovery.start(&hook);
    Ok(())
}

async fn start_remote_open_api(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    server.config.loaded.aggregation.open_api.start(&hook);
    Ok(())
}

async fn register_api_services(server: Arc<ServerChain>, hook: HookContext) -> Result<(), Status> {
    if let Some(registration) = server.auto_registration.clone() {
        registration.start(&hook);
    }
    Ok(())
}

/// The source of the addresses behind the `kubernetes` service.
fn endpoint_reconciler(server: &ServerChain) -> Result<EndpointReconciler, RunError> {
    let (options, storage) = (server.config.options(), &server.config.storage);
    Ok(match options.endpoint_reconciler_type {
        EndpointReconcilerType::Lease => {
            let leases = master_leases::resource();
            let prefix = format!("{}/{}/", storage.prefix(), leases.storage.path);
            let storage = storage.plain_storage(leases)?;
            EndpointReconciler::Lease(MasterLeases::new(storage, prefix))
        }
        EndpointReconcilerType::MasterCount => EndpointReconciler::MasterCount(options.apiserver_count),
        EndpointReconcilerType::None => EndpointReconciler::None,
    })
}
