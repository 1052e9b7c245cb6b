//! Pods (<https://kubernetes.io/docs/concepts/workloads/pods/>).
//!
//! [`super::pod_spec`] has the rules that pods share with the templates of workloads. This module has those of pods
//! alone: create, bind, update, resize, evict, delete, the status and the table.

mod binding;
mod conditions;
mod defaults;
mod disabled_status;
mod ephemeral_containers;
mod eviction;
mod label_keys;
mod log;
mod qos;
mod resize;
mod resize_validation;
mod status;
mod status_validation;
mod strategy;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod validation;

pub(crate) use binding::BindingCreater;
pub(in crate::core) use defaults::drop_init_container_annotations;

use super::group::GROUP;
use crate::declare::{Declare, PROXY_VERBS, STREAM_VERBS, boolean_field};
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, SelectableField, SubresourceKind};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
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
        .connect("attach", "PodAttachOptions", STREAM_VERBS)
        .subresource("binding", binding)
        .part("ephemeralcontainers", ephemeral_containers::EphemeralContainersStrategy)
        .subresource("eviction", eviction)
        .connect("exec", "PodExecOptions", STREAM_VERBS)
        .subresource("log", log::subresource())
        .connect("portforward", "PodPortForwardOptions", STREAM_VERBS)
        .connect("proxy", "PodProxyOptions", PROXY_VERBS)
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
            SelectableField::new("status.nominatedNodeName"),
        ]);
    resource.strategy = Arc::new(strategy::PodStrategy);
    resource.table = Arc::new(table::PodTable);
    resource
}
