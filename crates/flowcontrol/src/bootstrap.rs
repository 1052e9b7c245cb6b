//! The flow schemas and priority levels of a new server: mandatory ones, without which no request is served, and
//! suggested ones, which may be changed and are created again when they are deleted
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#defaults>).

use crate::priority_level::{CATCH_ALL, EXEMPT};
use pintle_machinery::{Value, json};

/// The annotation that says whether the server keeps an object's spec up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// The kind of a bootstrap object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// The server always restores its spec.
    Mandatory,
    /// Users may change it, if its annotation says so.
    Suggested,
}

/// The priority levels of a kind.
pub fn priority_levels(requirement: Requirement) -> Vec<Value> {
    match requirement {
        Requirement::Mandatory => vec![
            level(
                CATCH_ALL,
                json!({"type": "Limited", "limited": {
                    "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}}),
            ),
            level(
                EXEMPT,
                json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
            ),
        ],
        Requirement::Suggested => vec![
            queuing_level("system", 30, 33, 64, 6),
            queuing_level("node-high", 40, 25, 64, 6),
            queuing_level("leader-election", 10, 0, 16, 4),
            queuing_level("workload-high", 40, 50, 128, 6),
            queuing_level("workload-low", 100, 90, 128, 6),
            queuing_level("global-default", 20, 50, 128, 6),
        ],
    }
}

/// The flow schemas of a kind.
pub fn flow_schemas(requirement: Requirement) -> Vec<Value> {
    let everybody = || vec![group("system:unauthenticated"), group("system:authenticated")];
    match requirement {
        Requirement::Mandatory => vec![
            schema(EXEMPT, EXEMPT, 1, None, everything(vec![group("system:masters")])),
            schema(CATCH_ALL, CATCH_ALL, 10_000, Some("ByUser"), everything(everybody())),
        ],
        Requirement::Suggested => vec![
            schema("system-nodes", "system", 500, Some("ByUser"), everything(vec![group("system:nodes")])),
            schema(
                "system-node-high",
                "node-high",
                400,
                Some("ByUser"),
                json!({
                    "subjects": [group("system:nodes")],
                    "resourceRules": [
                        {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"],
                         "namespaces": ["*"], "clusterScope": true},
                        {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                         "namespaces": ["*"]},
                    ],
                }),
            ),
            schema(
                "probes",
                EXEMPT,
                2,
                None,
                json!({
                    "subjects": everybody(),
                    "nonResourceRules": [
                        {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]},
                    ],
                }),
            ),
            schema(
                "system-leader-election",
                "leader-election",
                100,
                Some("ByUser"),
                json!({
                    "subjects": [
                        user("system:kube-controller-manager"),
                        user("system:kube-scheduler"),
                        kube_system_accounts(),
                    ],
                    "resourceRules": [{"verbs": ["get", "create", "update"], "apiGroups": ["coordination.k8s.io"],
                        "resources": ["leases"], "namespaces": ["*"]}],
                }),
            ),
            schema(
                "kube-controller-manager",
                "workload-high",
                800,
                Some("ByNamespace"),
                everything(vec![user("system:kube-controller-manager")]),
            ),
            schema(
                "kube-scheduler",
                "workload-high",
                800,
                Some("ByNamespace"),
                everything(vec![user("system:kube-scheduler")]),
            ),
            schema(
                "kube-system-service-accounts",
                "workload-high",
                900,
                Some("ByNamespace"),
                everything(vec![kube_system_accounts()]),
            ),
            schema(
                "service-accounts",
                "workload-low",
                9_000,
                Some("ByUser"),
                everything(vec![group("system:serviceaccounts")]),
            ),
            schema("global-default", "global-default", 9_900, Some("ByUser"), everything(everybody())),
        ],
    }
}

fn level(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec,
    })
}

fn queuing_level(name: &str, shares: i64, lendable: i64, queues: i64, hand_size: i64) -> Value {
    level(
        name,
        json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": {
                "queues": queues, "handSize": hand_size, "queueLengthLimit": 50}},
        }}),
    )
}

fn schema(name: &str, level: &str, precedence: i64, distinguisher: Option<&str>, rule: Value) -> Value {
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    });
    if let (Some(method), Some(spec)) = (distinguisher, spec.as_object_mut()) {
        spec.insert("distinguisherMethod", json!({"type": method}));
    }
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec,
    })
}

/// A rule for all requests of these subjects.
fn everything(subjects: Vec<Value>) -> Value {
    json!({
        "subjects": subjects,
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
            "clusterScope": true}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    })
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "group": {"name": name}})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

fn kube_system_accounts() -> Value {
    json!({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}})
}
