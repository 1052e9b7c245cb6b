//! Metrics of logs, under Kubernetes' names (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use prometheus::{IntCounter, IntCounterVec, Opts, core::Collector};

/// The metrics of logs.
#[derive(Debug, Clone)]
pub struct PodLogMetrics {
    requests: IntCounterVec,
    untrusted: IntCounter,
}

impl PodLogMetrics {
    /// New metrics, which are zero.
    ///
    /// # Errors
    /// When a name is invalid.
    pub fn new() -> Result<PodLogMetrics, prometheus::Error> {
        let name = |name: &str| format!("kube_apiserver_pod_logs_{name}");
        let requests = Opts::new(
            name("insecure_backend_total"),
            "Requests for logs, by whether the certificate of the kubelet is verified.",
        );
        Ok(PodLogMetrics {
            requests: IntCounterVec::new(requests, &["usage"])?,
            untrusted: IntCounter::new(
                name("backend_tls_failure_total"),
                "Requests for logs that failed because the certificate of the kubelet was refused.",
            )?,
        })
    }

    /// The metrics, to be registered.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.requests.clone()), Box::new(self.untrusted.clone())]
    }

    /// Counts a request.
    pub(super) fn note_request(&self, is_verified: bool) {
        let usage = if is_verified { "enforce_tls" } else { "skip_tls_allowed" };
        self.requests.with_label_values(&[usage]).inc();
    }

    /// Counts a kubelet whose certificate was refused.
    pub(super) fn note_untrusted(&self) {
        self.untrusted.inc();
    }
}
