//! `NodeDeclaredFeatureValidator`: refuses an update of a pod that needs a feature its node does not declare
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/node-declared-features/>).

use super::{
    pods::{changes_bound_pod, node_of},
    quantities::is_restartable,
};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct NodeDeclaredFeatureValidator;

/// A node feature, and whether the change from an old pod to a new one needs it.
struct Feature {
    name: &'static str,
    needs: fn(old: &Value, new: &Value) -> bool,
}

/// The features that an update can need, sorted by name.
const FEATURES: [Feature; 2] = [
    Feature { name: "InPlacePodLevelResourcesVerticalScaling", needs: resizes_pod },
    Feature { name: "InPlacePodVerticalScalingInitContainers", needs: resizes_init_containers },
];

impl AdmissionPlugin for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        enabled(Gate::NodeDeclaredFeatures)
            && request.operation == Operation::Update
            && matches!(request.subresource, "" | "resize")
            && request.is_of("", "pods")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(old) = request.old_object.filter(|_| changes_bound_pod(request)) else { return Ok(()) };
            let new = &*request.object;
            let needed: Vec<&str> = FEATURES
                .iter()
                .filter(|feature| (feature.needs)(old, new))
                .map(|feature| feature.name)
                .collect();
            if needed.is_empty() {
                return Ok(());
            }
            let node = node_of(request).await?;
            let declared = node.items_at("status.declaredFeatures");
            let missing: Vec<&str> = needed
                .into_iter()
                .filter(|name| !declared.iter().any(|declared| declared.as_str() == Some(name)))
                .collect();
            match missing.is_empty() {
                true => Ok(()),
                false => Err(request.forbidden(format!(
                    "pod update requires features {} which are not available on node {}",
                    missing.join(", "),
                    quote(node.name())
                ))),
            }
        })
    }
}

fn resizes_pod(old: &Value, new: &Value) -> bool {
    old.at("spec.resources") != new.at("spec.resources")
}

/// Whether the resources of a non-restartable init container change.
fn resizes_init_containers(old: &Value, new: &Value) -> bool {
    let (old, new) = (old.items_at("spec.initContainers"), new.items_at("spec.initContainers"));
    old.iter().zip(new).any(|(old, new)| !is_restartable(old) && old.at("resources") != new.at("resources"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    fn resize(node: &str, old: Value, new: Value) -> Result<(), String> {
        let nodes = [
            json!({"metadata": {"name": "plain"}}),
            json!({
                "metadata": {"name": "able"},
                "status": {"declaredFeatures": ["InPlacePodVerticalScalingInitContainers"]},
            }),
        ];
        let objects = Objects::new(nodes.map(|node| ("nodes", node)));
        let pod = |generation: i64, mut spec: Value| {
            spec.set("nodeName", node);
            json!({"metadata": {"name": "p", "namespace": "n", "generation": generation}, "spec": spec})
        };
        let plugin = NodeDeclaredFeatureValidator;
        admit(&plugin, &objects, Operation::Update, "pods", "resize", pod(2, new), Some(&pod(1, old)))
            .map(drop)
            .map_err(|message| message.trim_start_matches("pods \"p\" is forbidden: ").to_owned())
    }

    #[test]
    fn an_update_needs_the_features_that_its_node_declares() {
        let init = |policy: &str, cpu: &str| {
            let mut container = json!({"name": "i", "resources": {"requests": {"cpu": cpu}}});
            if !policy.is_empty() {
                container.set("restartPolicy", policy);
            }
            json!({"initContainers": [container]})
        };
        assert_eq!(resize("gone", init("Always", "1"), init("Always", "2")), Ok(()));
        assert_eq!(resize("able", init("", "1"), init("", "2")), Ok(()));
        assert_eq!(resize("", init("", "1"), init("", "2")), Ok(()));
        let refused = |node: &str, old: Value, new: Value, message: &str| {
            assert_eq!(resize(node, old, new).unwrap_err(), message);
        };
        refused("gone", init("", "1"), init("", "2"), "node \"gone\" not found");
        {
            let _gates = override_gates(&FeatureGates::default().with(Gate::NodeDeclaredFeatures, false));
            assert_eq!(resize("plain", init("", "1"), init("", "2")), Ok(()));
        }
        refused(
            "plain",
            init("", "1"),
            init("", "2"),
            "pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node \"plain\"",
        );
        let mut both = init("", "2");
        both.set("resources.requests.cpu", "3");
        refused(
            "plain",
            init("", "1"),
            both.clone(),
            "pod update requires features InPlacePodLevelResourcesVerticalScaling, \
             InPlacePodVerticalScalingInitContainers which are not available on node \"plain\"",
        );
        refused(
            "able",
            init("", "1"),
            both,
            "pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node \"able\"",
        );
    }
}
