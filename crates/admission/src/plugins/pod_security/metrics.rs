//! The metrics of `PodSecurity`.

use crate::{AdmissionRequest, Operation};
use pintle_pod_security::{Level, LevelVersion, Version};
use prometheus::{IntCounterVec, Opts, core::Collector};

/// The version of Kubernetes that the server implements: later ones are counted together.
const LATEST_MINOR: u64 = 36;

/// The counters.
#[derive(Debug)]
pub(super) struct PodSecurityMetrics {
    evaluations: Option<IntCounterVec>,
    exemptions: Option<IntCounterVec>,
    errors: Option<IntCounterVec>,
}

impl Default for PodSecurityMetrics {
    fn default() -> PodSecurityMetrics {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let labels = [labels, &["request_operation", "resource", "subresource"]].concat();
            IntCounterVec::new(Opts::new(name, help), &labels).ok()
        };
        let metrics = PodSecurityMetrics {
            evaluations: counter(
                "pod_security_evaluations_total",
                "Evaluations of Pod Security Standards, by decision, level, version and mode.",
                &["decision", "policy_level", "policy_version", "mode"],
            ),
            exemptions: counter(
                "pod_security_exemptions_total",
                "Requests that are exempt from Pod Security Standards.",
                &[],
            ),
            errors: counter(
                "pod_security_errors_total",
                "Errors that prevented the evaluation of Pod Security Standards; if not fatal, the strictest was applied.",
                &["fatal"],
            ),
        };
        // These exist before the first evaluation and the first exemption, as in kube-apiserver.
        if let Some(evaluations) = &metrics.evaluations {
            for operation in ["create", "update"] {
                let labels = ["allow", "privileged", "latest", "enforce", operation, "pod", ""];
                evaluations.with_label_values(&labels);
            }
        }
        if let Some(exemptions) = &metrics.exemptions {
            for operation in ["create", "update"] {
                for resource in ["pod", "controller"] {
                    exemptions.with_label_values(&[operation, resource, ""]);
                }
            }
        }
        metrics
    }
}

impl PodSecurityMetrics {
    /// The collectors, for registration.
    pub(super) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        [&self.evaluations, &self.exemptions, &self.errors]
            .into_iter()
            .flatten()
            .map(|counter| Box::new(counter.clone()) as Box<dyn Collector>)
            .collect()
    }

    /// Counts the evaluation of a mode. The number of label values is bounded: there are few versions.
    pub(super) fn evaluated(
        &self,
        request: &AdmissionRequest<'_>,
        is_allowed: bool,
        policy: LevelVersion,
        mode: &str,
    ) {
        let version = match (policy.level, policy.version) {
            (Level::Privileged, _) | (_, Version::Latest) => "latest".to_owned(),
            (_, Version::Minor(minor)) if minor > LATEST_MINOR => "future".to_owned(),
            (_, version) => version.to_string(),
        };
        let decision = if is_allowed { "allow" } else { "deny" };
        count(&self.evaluations, request, &[decision, policy.level.as_str(), &version, mode]);
    }

    /// Counts an exempt request.
    pub(super) fn exempted(&self, request: &AdmissionRequest<'_>) {
        count(&self.exemptions, request, &[]);
    }

    /// Counts an error.
    pub(super) fn failed(&self, request: &AdmissionRequest<'_>, is_fatal: bool) {
        count(&self.errors, request, &[if is_fatal { "true" } else { "false" }]);
    }
}

fn count(counter: &Option<IntCounterVec>, request: &AdmissionRequest<'_>, labels: &[&str]) {
    let operation = match request.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    };
    let resource = match (request.is_of("", "pods"), request.is_of("", "namespaces")) {
        (true, _) => "pod",
        (_, true) => "namespace",
        _ => "controller",
    };
    if let Some(counter) = counter {
        counter.with_label_values(&[labels, &[operation, resource, request.subresource]].concat()).inc();
    }
}
