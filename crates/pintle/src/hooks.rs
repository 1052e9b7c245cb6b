//! The post-start hooks, and their health checks under kube-apiserver's names.
//!
//! The code that starts a part of the server marks its hook as started, and the check passes from then on. If a task of
//! the part dies, the supervisor fails the check. The fields are in the order of kube-apiserver's reports.

use pintle_apiserver::health::{CheckScope, Health, Hook};
use std::sync::Arc;

/// Adds the check of the loopback connection. The server calls its own handler in the process, without a certificate
/// that could expire, so that the check always passes.
pub(crate) fn add_loopback(health: &Health) {
    health.add("loopback-serving-certificate", CheckScope::NotReady, Arc::new(|| Ok(())));
}

/// The optional parts that are enabled.
pub(crate) struct Parts {
    /// Priority and fairness.
    pub(crate) flow_control: bool,
    /// API services.
    pub(crate) api_services: bool,
}

/// The hooks of all parts.
pub(crate) struct Hooks {
    /// The admission chain is built.
    pub(crate) admission_initializer: Hook,
    /// The watch caches are filled. Informers read from them, and they count the stored objects.
    pub(crate) caches: [Hook; 3],
    /// Flow control follows its objects.
    pub(crate) flow_control_consumer: Option<Hook>,
    /// Flow control classifies and queues requests.
    pub(crate) flow_control_filter: Option<Hook>,
    /// `CustomResourceDefinition`s are followed, and their resources served.
    pub(crate) api_extensions: [Hook; 2],
    /// Every definition that existed at the start is served or rejected.
    pub(crate) definitions: Hook,
    /// The control plane's controllers run: system namespaces, server addresses, the authentication ConfigMap, identity
    /// leases, token tracking, and repair of leaked addresses and ports.
    pub(crate) controllers: Vec<Hook>,
    /// The default roles exist.
    pub(crate) bootstrap_roles: Hook,
    /// The default priority classes exist.
    pub(crate) priority_classes: Hook,
    /// The default objects of flow control exist.
    pub(crate) flow_control_producer: Option<Hook>,
    /// The `kubernetes` service and its ServiceCIDR exist.
    pub(crate) kubernetes_service: [Hook; 2],
    /// Certificates and other configuration files are reloaded when they change.
    pub(crate) reloaded_files: Hook,
    /// The controller of API services runs.
    pub(crate) api_services: Vec<Hook>,
    /// The OpenAPI documents of custom resources are built.
    pub(crate) documents: Vec<Hook>,
}

impl Hooks {
    /// Adds the checks of all hooks.
    pub(crate) fn new(health: &Health, parts: &Parts) -> Hooks {
        let hook = |name: &str| health.hook(name);
        let flow_control = |name: &str| parts.flow_control.then(|| health.hook(name));
        let admission_initializer = hook("start-apiserver-admission-initializer");
        let informers = hook("generic-apiserver-start-informers");
        let flow_control_consumer = flow_control("priority-and-fairness-config-consumer");
        let flow_control_filter = flow_control("priority-and-fairness-filter");
        let object_counts = hook("storage-object-count-tracker-hook");
        let api_extensions = ["start-apiextensions-informers", "start-apiextensions-controllers"].map(hook);
        let definitions = hook("crd-informer-synced");
        let mut controllers: Vec<Hook> = [
            "start-system-namespaces-controller",
            "peer-endpoint-reconciler-controller",
            "start-cluster-authentication-info-controller",
            "start-kube-apiserver-identity-lease-controller",
            "start-kube-apiserver-identity-lease-garbage-collector",
        ]
        .map(hook)
        .into();
        let storage = hook("storage-readiness");
        controllers.extend(
            ["start-legacy-token-tracking-controller", "start-service-ip-repair-controllers"].map(hook),
        );
        Hooks {
            admission_initializer,
            caches: [informers, object_counts, storage],
            flow_control_consumer,
            flow_control_filter,
            api_extensions,
            definitions,
            controllers,
            bootstrap_roles: hook("rbac/bootstrap-roles"),
            priority_classes: hook("scheduling/bootstrap-system-priority-classes"),
            flow_control_producer: flow_control("priority-and-fairness-config-producer"),
            kubernetes_service: ["bootstrap-controller", "start-kubernetes-service-cidr-controller"]
                .map(hook),
            reloaded_files: hook("aggregator-reload-proxy-client-cert"),
            api_services: match parts.api_services {
                true => vec![
                    hook("start-kube-aggregator-informers"),
                    hook("apiservice-status-local-available-controller"),
                    hook("apiservice-status-remote-available-controller"),
                    hook("apiservice-registration-controller"),
                    hook("apiservice-wait-for-first-sync"),
                    hook("apiservice-discovery-controller"),
                    hook("kube-apiserver-autoregistration"),
                ],
                false => Vec::new(),
            },
            documents: Vec::new(),
        }
    }

    /// Adds the checks that kube-apiserver reports last.
    pub(crate) fn add_documents(&mut self, health: &Health) {
        if !self.api_services.is_empty() {
            let names = ["apiservice-openapi-controller", "apiservice-openapiv3-controller"];
            self.documents.extend(names.map(|name| health.hook(name)));
        }
    }

    /// Marks that the watch caches are filled.
    pub(crate) fn caches_filled(&self) {
        self.caches.iter().for_each(Hook::started);
    }

    /// Marks that the objects of a new server exist, and that their controllers run.
    pub(crate) fn bootstrapped(&self) {
        self.controllers.iter().chain(&self.kubernetes_service).for_each(Hook::started);
        self.bootstrap_roles.started();
        self.priority_classes.started();
        self.flow_control_producer.iter().for_each(Hook::started);
    }

    /// Marks that flow control is configured and follows its objects.
    pub(crate) fn flow_control_started(&self) {
        self.flow_control_consumer.iter().chain(&self.flow_control_filter).for_each(Hook::started);
    }

    /// Marks that API services are followed.
    pub(crate) fn api_services_followed(&self) {
        self.api_services.iter().for_each(Hook::started);
    }

    /// Marks that custom resources are served, and that their OpenAPI documents are built.
    pub(crate) fn definitions_served(&self) {
        self.definitions.started();
        self.api_extensions.iter().chain(&self.documents).for_each(Hook::started);
    }
}
