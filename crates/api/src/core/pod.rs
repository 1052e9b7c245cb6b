//! Pods.

use super::GROUP;
use crate::declare::{Declare, PROXY_VERBS, STREAM_VERBS, boolean_field};
use pintle_machinery::GroupVersionKind;
use pintle_registry::{DefaultStrategy, Resource, SelectableField, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Pod", "pods")
        .short_names(["po"])
        .categories(["all"])
        .connect("attach", "PodAttachOptions", STREAM_VERBS)
        .connect("binding", "Binding", [Verb::Create])
        .part("ephemeralcontainers", DefaultStrategy)
        .connect_of("eviction", GroupVersionKind::new("policy", "v1", "Eviction"), [Verb::Create])
        .connect("exec", "PodExecOptions", STREAM_VERBS)
        .connect("log", "Pod", [Verb::Get])
        .connect("portforward", "PodPortForwardOptions", STREAM_VERBS)
        .connect("proxy", "PodProxyOptions", PROXY_VERBS)
        .part("resize", DefaultStrategy)
        .status(DefaultStrategy)
        .selectable([
            SelectableField::new("spec.nodeName").with_trigger(),
            SelectableField::new("spec.restartPolicy"),
            SelectableField::new("spec.schedulerName"),
            SelectableField::new("spec.serviceAccountName"),
            boolean_field("spec.hostNetwork"),
            SelectableField::new("status.phase"),
            SelectableField::new("status.podIP"),
            SelectableField::new("status.nominatedNodeName"),
        ])
}
