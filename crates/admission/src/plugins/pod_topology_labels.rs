//! `PodTopologyLabels`: copies the zone and region of a node to the pods that are bound to it
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtopologylabels>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{GroupResource, Status, ValueExt};
use pintle_registry::BoxFuture;

/// The labels that are copied.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// The plugin.
#[derive(Debug)]
pub struct PodTopologyLabels {
    nodes: GroupResource,
}

impl Default for PodTopologyLabels {
    fn default() -> PodTopologyLabels {
        PodTopologyLabels { nodes: GroupResource::new("", "nodes") }
    }
}

impl AdmissionPlugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        enabled(Gate::PodTopologyLabelsAdmission)
            && request.operation == Operation::Create
            && request.is_of("", "pods")
            && matches!(request.subresource, "" | "binding")
    }

    /// Sets the labels of the pod, or those of the binding, which become labels of its pod.
    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let node = match request.subresource {
                "" => request.object.str_at("spec.nodeName"),
                _ if request.object.str_at("target.kind") == "Node" => request.object.str_at("target.name"),
                _ => "",
            };
            if node.is_empty() {
                return Ok(());
            }
            // A cluster has many nodes, and they are large: their trees are not made for two labels.
            let labels =
                request.find_labels(&self.nodes, "", node, &TOPOLOGY_LABELS).await?.unwrap_or_default();
            if !labels.is_empty() {
                let labels = labels.into_iter().map(|(key, value)| (key, value.into()));
                request.object.to_mut().object_at_mut("metadata.labels").extend(labels);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn pods_and_bindings_get_the_labels_of_their_node() {
        let labels = json!({"topology.kubernetes.io/zone": "z", "other": "o"});
        let objects = Objects::new([("nodes", json!({"metadata": {"name": "n", "labels": labels}}))]);
        let create = |subresource: &str, object| {
            let plugin = PodTopologyLabels::default();
            let admitted = admit(&plugin, &objects, Operation::Create, "pods", subresource, object, None);
            admitted.unwrap().at("metadata.labels").cloned()
        };
        let copied = Some(json!({"topology.kubernetes.io/zone": "z"}));
        let pod = |node: &str| json!({"metadata": {"name": "p"}, "spec": {"nodeName": node}});
        assert_eq!(create("", pod("n")), copied);
        assert_eq!(create("", pod("m")), None);
        assert_eq!(create("", pod("")), None);
        let binding = |kind: &str| json!({"metadata": {"name": "p"}, "target": {"kind": kind, "name": "n"}});
        assert_eq!(create("binding", binding("Node")), copied);
        assert_eq!(create("binding", binding("")), None);
        let _gates = override_gates(&FeatureGates::default().with(Gate::PodTopologyLabelsAdmission, false));
        assert_eq!(create("", pod("n")), None);
    }
}
