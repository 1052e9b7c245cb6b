//! Assembles the server's authorizers.

use crate::{Options, run_error::RunError};
use pintle_apiserver::{post_start_hooks::HookContext, registry::Stores, serving::stopped};
use pintle_auth::authz::Authorizer;
use pintle_authorization::{
    AuthorizationMetrics, AuthorizerType, ConfiguredAuthorizer, NodeAuthorizer, NodeSources,
    ObjectAuthorizers,
};
use pintle_cacher::Cacher;
use pintle_dialer::Dialer;
use pintle_machinery::GroupResource;
use pintle_rbac::{GROUP_NAME, Rbac, Sources};
use prometheus::core::Collector;
use std::sync::Arc;

/// The configured authorizers, and the objects that they use.
pub(crate) struct Authorization {
    configured: Arc<ConfiguredAuthorizer>,
    node: Arc<NodeAuthorizer>,
    /// Roles and bindings are followed in every mode: strategies and access reviews need them.
    pub(crate) rbac: Arc<Rbac>,
    metrics: Arc<AuthorizationMetrics>,
}

impl Authorization {
    /// Loads the configuration that the options name. Webhooks are in the network of the dialer.
    pub(crate) fn load(options: &Options, dialer: Dialer) -> Result<Authorization, RunError> {
        let metrics = AuthorizationMetrics::new(&options.identity());
        let metrics = Arc::new(metrics?);
        let source = options.authorization.source();
        let (node, rbac) = (NodeAuthorizer::new(metrics.node().clone()), Arc::new(Rbac::default()));
        let objects = ObjectAuthorizers { node: node.clone(), rbac: rbac.clone() };
        let policy_file = options.authorization.policy_file.clone();
        let configured = ConfiguredAuthorizer::load(source, policy_file, objects, metrics.clone(), dialer)?;
        Ok(Authorization { configured, node, rbac, metrics })
    }

    /// The authorizer of all requests: members of `system:masters` may do everything; for other users the configured
    /// authorizers are consulted in order.
    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        self.configured.clone()
    }

    /// Whether nodes are authorized by the objects that belong to them.
    pub(crate) fn has_nodes(&self) -> bool {
        self.configured.has(AuthorizerType::Node)
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }

    /// Starts to feed roles, bindings and the node graph from the server's stores, and to reload the configuration.
    pub(crate) fn start(&self, stores: &Stores, hook: &HookContext) {
        let (supervisor, stopping) = (hook.supervisor(), hook.stopping());
        let cacher = |group, resource| -> Option<Arc<Cacher>> {
            let store = stores.store(&GroupResource::new(group, resource)).ok()?;
            Some(store.cacher().clone())
        };
        let sources = Sources {
            roles: cacher(GROUP_NAME, "roles"),
            cluster_roles: cacher(GROUP_NAME, "clusterroles"),
            role_bindings: cacher(GROUP_NAME, "rolebindings"),
            cluster_role_bindings: cacher(GROUP_NAME, "clusterrolebindings"),
        };
        hook.join(self.rbac.follow(sources, supervisor, stopping));
        if self.has_nodes() {
            let sources = NodeSources {
                pods: cacher("", "pods"),
                persistent_volumes: cacher("", "persistentvolumes"),
                volume_attachments: cacher("storage.k8s.io", "volumeattachments"),
                resource_slices: cacher("resource.k8s.io", "resourceslices"),
                pod_certificate_requests: cacher("certificates.k8s.io", "podcertificaterequests"),
            };
            hook.join(self.node.follow(sources, supervisor, stopping));
        }
        let (configured, stopping) = (self.configured.clone(), stopping.clone());
        hook.join([supervisor.spawn_restarting("authorization-config", move || {
            let (configured, mut stopping) = (configured.clone(), stopping.clone());
            async move {
                tokio::select! {
                    () = configured.run() => {}
                    () = stopped(&mut stopping) => {}
                }
            }
        })]);
    }

    /// Waits until the objects that existed at the start are known.
    pub(crate) async fn wait_synced(&self) {
        self.rbac.wait_synced().await;
        self.node.wait_synced().await;
    }
}
