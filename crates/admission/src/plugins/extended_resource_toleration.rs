//! `ExtendedResourceToleration`: lets pods that request an extended resource run on the nodes tainted with its name
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration>).

use super::tolerations::{self, Toleration};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt, validation::is_qualified_name};
use pintle_registry::BoxFuture;
use std::{collections::BTreeSet, future::ready};

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct ExtendedResourceToleration;

impl AdmissionPlugin for ExtendedResourceToleration {
    fn name(&self) -> &'static str {
        "ExtendedResourceToleration"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let resources = extended_resources(&request.object);
        if !resources.is_empty() {
            let mut tolerations = tolerations::of_pod(&request.object);
            // A pod may have many resources and tolerations: each resource is searched for once.
            let mut missing = resources;
            for toleration in &mut tolerations {
                let wanted = Toleration::exists(&toleration.key, "NoSchedule");
                if toleration.matches(&wanted) && missing.contains(&wanted.key) {
                    *toleration = wanted;
                }
            }
            for toleration in
                tolerations.iter().filter(|own| **own == Toleration::exists(&own.key, "NoSchedule"))
            {
                missing.remove(&toleration.key);
            }
            tolerations.extend(missing.iter().map(|name| Toleration::exists(name, "NoSchedule")));
            tolerations::set(request.object.to_mut(), &tolerations);
        }
        Box::pin(ready(Ok(())))
    }
}

/// The extended resources that the containers request.
fn extended_resources(pod: &Value) -> BTreeSet<String> {
    ["spec.containers", "spec.initContainers"]
        .into_iter()
        .flat_map(|path| pod.items_at(path))
        .flat_map(|container| container.map_at("resources.requests").keys())
        .filter(|name| is_extended(name))
        .map(ToString::to_string)
        .collect()
}

/// Whether the name is that of an extended resource: neither one of Kubernetes, nor one of quotas.
fn is_extended(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    !is_native && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn requested_devices_are_tolerated() {
        let check = |requests: Value, tolerations: Value, expected: Value| {
            let container = json!({"name": "c", "resources": {"requests": requests}});
            let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container], "tolerations": tolerations}});
            let (plugin, objects) = (ExtendedResourceToleration, Objects::default());
            let pod = admit(&plugin, &objects, Operation::Create, "pods", "", pod, None).unwrap();
            assert_eq!(pod.at("spec.tolerations").unwrap(), &expected);
        };
        let gpu = json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"});
        let fpga = json!({"key": "example.com/fpga", "operator": "Exists", "effect": "NoSchedule"});
        let both = json!({"example.com/gpu": 1, "example.com/fpga": 1, "cpu": 1, "kubernetes.io/x": 1});
        check(both, json!([]), json!([fpga, gpu]));
        check(json!({"cpu": 1, "requests.a/b": 1, "a.kubernetes.io/x": 1}), json!([]), json!([]));
        check(json!({"example.com/gpu": 1}), json!([gpu]), json!([gpu]));
        let other = json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoExecute"});
        check(json!({"example.com/gpu": 1}), json!([other]), json!([other, gpu]));
        let mut limited = gpu.clone();
        limited["tolerationSeconds"] = json!(3);
        check(json!({"example.com/gpu": 1}), json!([limited]), json!([gpu]));
    }
}
