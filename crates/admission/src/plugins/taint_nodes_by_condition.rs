//! `TaintNodesByCondition`: taints a new node as not ready, so that no pod is scheduled on it before a controller has
//! evaluated its conditions
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#taintnodesbycondition>).

use super::pods::push;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, ValueExt, json};
use pintle_registry::BoxFuture;
use std::future::ready;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct TaintNodesByCondition;

impl AdmissionPlugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for("", "nodes")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let tainted = request
            .object
            .items_at("spec.taints")
            .iter()
            .any(|taint| taint.str_at("key") == NOT_READY && taint.str_at("effect") == "NoSchedule");
        if !tainted {
            push(request.object.to_mut(), "spec.taints", json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::Value;

    #[test]
    fn new_nodes_are_not_ready() {
        let check = |taints: Value, expected: Value| {
            let node = json!({"metadata": {"name": "a"}, "spec": {"taints": taints}});
            let objects = Objects::default();
            let node =
                admit(&TaintNodesByCondition, &objects, Operation::Create, "nodes", "", node, None).unwrap();
            assert_eq!(node["spec"]["taints"], expected);
        };
        let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
        let other = json!({"key": "dedicated", "effect": "NoExecute"});
        let own = json!({"key": NOT_READY, "effect": "NoSchedule", "value": "mine"});
        check(Value::Null, json!([taint]));
        check(json!([other]), json!([other, taint]));
        check(json!([own]), json!([own]));
    }
}
