//! Records streams to containers and pods.

use super::metric_registry::MetricRegistry;
use prometheus::{IntCounterVec, Opts};

/// Counts of streams. A clone counts into the same metrics.
#[derive(Clone)]
pub(crate) struct StreamMetrics {
    translated: IntCounterVec,
    tunneled: IntCounterVec,
    routed: IntCounterVec,
}

impl StreamMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<StreamMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        Ok(StreamMetrics {
            translated: counter(
                "apiserver_stream_translator_requests_total",
                "Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
                &["code"],
            )?,
            tunneled: counter(
                "apiserver_stream_tunnel_requests_total",
                "Total number of requests that were handled by the StreamTunnelProxy, which processes streaming PortForward/V2",
                &["code"],
            )?,
            routed: counter(
                "apiserver_websocket_streaming_requests_total",
                "Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; otherwise translated_at_apiserver.",
                &["subresource", "proxy_type"],
            )?,
        })
    }

    /// A command was translated, with this result.
    pub(crate) fn translated(&self, code: u16) {
        self.translated.with_label_values(&[&code.to_string()]).inc();
    }

    /// A connection to ports was tunneled or not.
    pub(crate) fn tunneled(&self, code: u16) {
        self.tunneled.with_label_values(&[&code.to_string()]).inc();
    }

    /// A stream is served, by the node itself or translated.
    pub(crate) fn routed(&self, subresource: &str, is_native: bool) {
        let proxy_type = if is_native { "proxied_to_kubelet" } else { "translated_at_apiserver" };
        self.routed.with_label_values(&[subresource, proxy_type]).inc();
    }
}
