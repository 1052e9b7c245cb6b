//! `LimitPodHardAntiAffinityTopology`: pods may require to be apart by node only, not by larger domains
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#limitpodhardantiaffinitytopology>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;
use std::future::ready;

const TERMS: &str = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct LimitPodHardAntiAffinityTopology;

impl AdmissionPlugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "pods")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let key = |term: &Value| term.str_at("topologyKey").to_owned();
        let other = request.object.items_at(TERMS).iter().map(key).find(|key| key != HOSTNAME);
        Box::pin(ready(match other {
            None => Ok(()),
            Some(key) => Err(Status::forbidden(
                &request.resource.group_resource(),
                request.object.name(),
                &format!(
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is \
                     allowed"
                ),
            )),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn only_nodes_may_keep_pods_apart() {
        let create = |key: &str| {
            let mut pod = json!({"metadata": {"name": "p"}});
            pod.set(TERMS, json!([{"topologyKey": HOSTNAME}, {"topologyKey": key}]));
            let plugin = LimitPodHardAntiAffinityTopology;
            admit(&plugin, &Objects::default(), Operation::Create, "pods", "", pod, None).map(drop)
        };
        assert_eq!(create(HOSTNAME), Ok(()));
        assert_eq!(
            create("zone").unwrap_err(),
            "pods \"p\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only \
             key kubernetes.io/hostname is allowed"
        );
    }
}
