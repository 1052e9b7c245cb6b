//! Pods (<https://kubernetes.io/docs/concepts/workloads/pods/>).
//!
//! [`super::pod_spec`] has the rules that pods share with the templates of workloads. This module has those of pods
//! alone: create, bind, update, resize, evict, delete, the status and the table.

mod binding;
mod conditions;
mod container;
mod defaults;
mod disabled_status;
mod ephemeral_containers;
mod eviction;
mod label_keys;
mod log;
mod log_metrics;
mod proxy;
mod qos;
mod resize;
mod resize_validation;
mod status;
mod status_validation;
mod strategy;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod validation;

pub(crate) use binding::BindingCreater;
pub(in crate::core) use defaults::drop_init_container_annotations;
pub use log_metrics::PodLogMetrics;

use super::{group::GROUP, node::KubeletAddresses};
use crate::declare::{Declare, boolean_field};
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, SelectableField, SubresourceKind};
use std::sync::Arc;
use stream::StreamKind;

/// The declaration of the resource.
pub fn resource(kubelets: &KubeletAddresses, log_metrics: Option<&PodLogMetrics>) -> Resource {
    let stream = |kind| stream::PodStream { kind, kubelets: kubelets.clone() };
    let binding = SubresourceKind::Create {
        kind: GroupVersionKind::new("", "v1", "Binding"),
        other_versions: Vec::new(),
        creater: Arc::new(binding::BindingCreater),
    };
    let eviction = SubresourceKind::Create {
        kind: GroupVersionKind::new("policy", "v1", "Eviction"),
        other_versions: vec!["v1beta1".to_owned()],
        creater: Arc::new(eviction::EvictionCreater),
    };
    let mut resource = GROUP
        .namespaced("Pod", "pods")
        .short_names(["po"])
        .categories(["all"])
        .stream("attach", "PodAttachOptions", stream(StreamKind::Attach))
        .subresource("binding", binding)
        .part("ephemeralcontainers", ephemeral_containers::EphemeralContainersStrategy)
        .subresource("eviction", eviction)
        .stream("exec", "PodExecOptions", stream(StreamKind::Exec))
        .subresource("log", log::subresource(kubelets, log_metrics))
        .stream("portforward", "PodPortForwardOptions", stream(StreamKind::PortForward))
        .proxied("PodProxyOptions", proxy::PodProxy)
        .part("resize", resize::ResizeStrategy)
        .status(status::StatusStrategy)
        .selectable([
            SelectableField::new("spec.nodeName").with_trigger(),
            SelectableField::new("spec.restartPolicy"),
            SelectableField::new("spec.schedulerName"),
            SelectableField::new("spec.serviceAccountName"),
            boolean_field("spec.hostNetwork"),
            SelectableField::new("status.phase"),
            SelectableField::new("status.podIP"),
            // The name is supported, but never has a value.
            SelectableField { value: |_, _| String::new(), ..SelectableField::new("status.podIPs") },
            SelectableField::new("status.nominatedNodeName"),
        ]);
    resource.strategy = Arc::new(strategy::PodStrategy);
    resource.table = Arc::new(table::PodTable);
    resource
}
