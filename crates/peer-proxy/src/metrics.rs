//! The metrics of forwarding to other servers, under kube-apiserver's names.

use pintle_machinery::GroupVersionResource;
use prometheus::{IntCounterVec, Opts, core::Collector};

/// Counts forwarded requests and failures.
#[derive(Clone)]
pub struct PeerMetrics {
    rerouted: IntCounterVec,
    proxy_errors: IntCounterVec,
    sync_errors: IntCounterVec,
}

/// The reason why a request was not forwarded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProxyError {
    EndpointResolution,
    ProxyTransport,
}

/// The reason why the discovery of a peer is unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SyncError {
    HostPortResolution,
    FetchDiscovery,
}

impl PeerMetrics {
    /// Metrics without values.
    ///
    /// # Errors
    /// When a metric is malformed, which would be a defect.
    pub fn new() -> prometheus::Result<PeerMetrics> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(format!("apiserver_{name}"), help), labels)
        };
        Ok(PeerMetrics {
            rerouted: counter(
                "rerouted_request_total",
                "Total number of requests that were proxied to a peer kube-apiserver because the local apiserver was \
                 not capable of serving it, broken down by 'group', 'version', and 'resource' indicating the GVR of \
                 the request. If all three are empty (\"\"), the request is a discovery request.",
                &["code", "group", "version", "resource"],
            )?,
            proxy_errors: counter(
                "peer_proxy_errors_total",
                "Total number of errors encountered while proxying requests to a peer kube apiserver",
                &["type", "group", "version", "resource"],
            )?,
            sync_errors: counter(
                "peer_discovery_sync_errors_total",
                "Total number of errors encountered while syncing discovery information from a peer kube-apiserver",
                &["type"],
            )?,
        })
    }

    /// The metrics, to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        [&self.rerouted, &self.proxy_errors, &self.sync_errors]
            .map(|counter| Box::new(counter.clone()) as _)
            .into()
    }

    /// Counts a forwarded request; without a resource, a question for discovery.
    pub(crate) fn count_rerouted(&self, code: u16, resource: Option<&GroupVersionResource>) {
        let [group, version, resource] = labels(resource);
        self.rerouted.with_label_values(&[&code.to_string(), group, version, resource]).inc();
    }

    pub(crate) fn count_proxy_error(&self, error: ProxyError, resource: &GroupVersionResource) {
        let error = match error {
            ProxyError::EndpointResolution => "endpoint_resolution",
            ProxyError::ProxyTransport => "proxy_transport",
        };
        let [group, version, resource] = labels(Some(resource));
        self.proxy_errors.with_label_values(&[error, group, version, resource]).inc();
    }

    pub(crate) fn count_sync_error(&self, error: SyncError) {
        let error = match error {
            SyncError::HostPortResolution => "hostport_resolution",
            SyncError::FetchDiscovery => "fetch_discovery",
        };
        self.sync_errors.with_label_values(&[error]).inc();
    }
}

fn labels(resource: Option<&GroupVersionResource>) -> [&str; 3] {
    resource.map(|own| [&*own.group, &*own.version, &*own.resource]).unwrap_or_default()
}
