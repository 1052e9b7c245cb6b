//! Defines the configuration that the kinds depend on.

use crate::{
    authentication::token_review::TokenReviewer,
    core::{node::KubeletAddresses, pod::PodLogMetrics, service::ServiceNetwork},
};
use pintle_machinery::{GroupResource, Status, Value};
use pintle_rbac::Rbac;
use pintle_registry::{BoxFuture, ComputedObjects};
use pintle_service_account::TokenIssuer;
use std::{future::ready, sync::Arc, time::Duration};

/// The configuration that the kinds depend on.
#[derive(Debug, Clone)]
pub struct Config {
    /// The network from which services get addresses and ports.
    pub service_network: Arc<ServiceNetwork>,
    /// The time for which events are kept; zero keeps them without limit.
    pub event_ttl: Duration,
    /// Signs tokens for service accounts; `None` issues none.
    pub token_issuer: Option<Arc<TokenIssuer>>,
    /// Authenticates the tokens of token reviews.
    pub token_reviewer: Arc<TokenReviewer>,
    /// The health of the components of the control plane.
    pub component_statuses: Arc<dyn ComputedObjects>,
    /// The index of roles and bindings, for the prevention of privilege escalation.
    pub rbac: Arc<Rbac>,
    /// The addresses at which kubelets are reached.
    pub kubelets: KubeletAddresses,
    /// Counts the requests for logs; `None` counts nothing.
    pub pod_log_metrics: Option<PodLogMetrics>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            service_network: Arc::default(),
            event_ttl: Duration::from_secs(60 * 60),
            token_issuer: Some(Arc::default()),
            token_reviewer: Arc::default(),
            component_statuses: Arc::new(NoComponents),
            rbac: Arc::default(),
            kubelets: KubeletAddresses::default(),
            pod_log_metrics: None,
        }
    }
}

/// No components.
struct NoComponents;

impl ComputedObjects for NoComponents {
    fn list(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(ready(Vec::new()))
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(ready(Err(Status::not_found(&GroupResource::new("", "componentstatus"), name))))
    }
}
