//! Tests binding and evicting pods.

use super::{resource, stored};
use crate::core::node::KubeletAddresses;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, json};
use pintle_registry::testing::{MemoryRegistry, now, with_context};
use pintle_registry::{Registry, RequestContext, SubresourceKind, WriteOptions};

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn budgets() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

fn registry_with(objects: &[(GroupResource, &str, Value)]) -> MemoryRegistry {
    let registry = MemoryRegistry::default();
    for (resource, namespace, object) in objects {
        now(registry.create(resource, namespace, object.clone(), WriteOptions::default())).unwrap();
    }
    registry
}

fn post(registry: &MemoryRegistry, subresource: &str, body: Value) -> Result<Value, Status> {
    let resource = resource(&KubeletAddresses::default(), None);
    let Some(SubresourceKind::Create { creater, .. }) =
        resource.subresource(subresource).map(|part| &part.kind)
    else {
        panic!("no creater")
    };
    with_context(registry, "ns", false, |context| {
        let context = RequestContext { name: "p", subresource, ..*context };
        let mut body = body;
        now(creater.prepare(&context, &mut body))?;
        now(creater.create(&context, body))
    })
}

fn message(result: Result<Value, Status>) -> String {
    match result {
        Ok(value) => format!("{} {}", value["code"], value["status"]),
        Err(status) => {
            let cause = status.details.iter().flat_map(|details| &details.causes).next();
            format!("{} {}", status.code, cause.map_or(&status.message, |cause| &cause.message))
        }
    }
}

#[test]
fn a_binding_puts_a_pod_on_a_node() {
    let gated = json!({"schedulingGates": [{"name": "g"}]});
    let binding = |rest: Value| {
        let mut binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
        super::merge(&mut binding, &rest);
        binding
    };
    let rows = [
        (json!({}), json!({}), binding(json!({})), "201 \"Success\""),
        (
            json!({}),
            json!({}),
            binding(json!({"metadata": {"name": "q"}})),
            "400 name in URL does not match name in Binding object",
        ),
        (
            json!({}),
            json!({}),
            binding(json!({"target": {"kind": "Pod", "name": null}})),
            "500 [target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]",
        ),
        (
            json!({"nodeName": "m"}),
            json!({}),
            binding(json!({})),
            "409 Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"m\"",
        ),
        (
            gated,
            json!({}),
            binding(json!({})),
            "409 Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty .spec.schedulingGates",
        ),
        (
            json!({}),
            json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}),
            binding(json!({})),
            "409 Operation cannot be fulfilled on pods/binding \"p\": pod p is being deleted, cannot be assigned to a host",
        ),
        (
            json!({}),
            json!({}),
            binding(json!({"metadata": {"uid": "other"}})),
            "409 Operation cannot be fulfilled on pods \"p\": Precondition failed: UID in precondition: other, UID in object meta: u",
        ),
    ];
    for (spec, rest, body, wanted) in rows {
        let pod = stored(spec, rest);
        let registry = registry_with(&[(pods(), "ns", pod)]);
        assert_eq!(message(post(&registry, "binding", body.clone())), wanted, "{body}");
    }
    let nominated = stored(json!({}), json!({"status": {"nominatedNodeName": "x"}}));
    let registry = registry_with(&[(pods(), "ns", nominated)]);
    post(
        &registry,
        "binding",
        binding(json!({"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}})),
    )
    .unwrap();
    let bound = registry.stored(&pods(), "ns", "p").unwrap();
    assert_eq!(bound.str_at("spec.nodeName"), "n");
    assert_eq!(bound.at("status.nominatedNodeName"), None);
    assert_eq!(bound.at("metadata.labels"), Some(&json!({"c": "d"})));
    assert_eq!(bound.at("metadata.annotations"), Some(&json!({"a": "b"})));
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(bound.i64_at("metadata.generation"), Some(1));
}

#[test]
fn an_eviction_asks_the_budget() {
    let running = |ready: &str| {
        stored(
            json!({"nodeName": "n"}),
            json!({
                "metadata": {"labels": {"app": "x"}},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
            }),
        )
    };
    let budget = |name: &str, rest: Value| {
        let mut budget = json!({
            "metadata": {"name": name, "namespace": "ns", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1},
        });
        super::merge(&mut budget, &rest);
        budget
    };
    let used_up = json!({"status": {"disruptionsAllowed": 0, "currentHealthy": 1}});
    let spent = |allowed: i64| Some(allowed);
    let rows: &[(Value, Vec<Value>, &str, Option<i64>)] = &[
        (running("True"), vec![], "201 \"Success\"", None),
        (running("True"), vec![budget("b", json!({}))], "201 \"Success\"", spent(0)),
        (
            running("True"),
            vec![budget("b", json!({"spec": {"selector": {"matchLabels": {"app": "y"}}}}))],
            "201 \"Success\"",
            spent(1),
        ),
        (
            running("True"),
            vec![budget("b", used_up.clone())],
            "429 The disruption budget b needs 1 healthy pods and has 1 currently",
            spent(0),
        ),
        (
            running("True"),
            vec![budget("b", json!({"metadata": {"generation": 2}}))],
            "429 The disruption budget b is still being processed by the server.",
            spent(1),
        ),
        (
            running("False"),
            vec![budget("b", json!({"status": {"disruptionsAllowed": 0}}))],
            "201 \"Success\"",
            spent(0),
        ),
        (
            running("False"),
            vec![budget("b", json!({"status": {"disruptionsAllowed": 0, "currentHealthy": 0}}))],
            "429 The disruption budget b needs 1 healthy pods and has 0 currently",
            spent(0),
        ),
        (
            running("True"),
            vec![budget("b", json!({})), budget("c", json!({}))],
            "500 This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            spent(1),
        ),
    ];
    for (pod, given, wanted, allowed) in rows {
        let mut objects = vec![(pods(), "ns", pod.clone())];
        objects.extend(given.iter().map(|budget| (budgets(), "ns", budget.clone())));
        let registry = registry_with(&objects);
        let answer = message(post(&registry, "eviction", json!({"metadata": {"name": "p"}})));
        assert_eq!(answer, *wanted, "{given:?}");
        assert_eq!(registry.stored(&pods(), "ns", "p").is_none(), answer.starts_with("201"));
        let left = registry.stored(&budgets(), "ns", "b");
        assert_eq!(left.and_then(|budget| budget.i64_at("status.disruptionsAllowed")), *allowed);
    }
    // Pods that are pending or have ended do not count against a budget.
    for phase in ["Pending", "Failed", "Succeeded"] {
        let mut pod = running("True");
        pod.set("status.phase", phase);
        let registry = registry_with(&[(pods(), "ns", pod), (budgets(), "ns", budget("b", used_up.clone()))]);
        let answer = post(&registry, "eviction", json!({"metadata": {"name": "p"}}));
        assert_eq!(message(answer), "201 \"Success\"", "{phase}");
    }
}

#[test]
fn a_failed_precondition_still_spends_the_budget_and_a_dry_run_does_not() {
    let pod = stored(
        json!({"nodeName": "n"}),
        json!({
            "metadata": {"labels": {"app": "x"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    let budget = json!({
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1},
    });
    let rows = [
        (json!({"preconditions": {"resourceVersion": "99"}}), 409, 0),
        (json!({"preconditions": {"uid": "other"}}), 409, 0),
        (json!({"dryRun": ["All"]}), 201, 1),
        // The deletion finds what is wrong with its options.
        (json!({"dryRun": ["x"]}), 422, 1),
        (json!({"propagationPolicy": "Foo"}), 422, 0),
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), 422, 0),
    ];
    for (options, code, allowed) in rows {
        let registry = registry_with(&[(pods(), "ns", pod.clone()), (budgets(), "ns", budget.clone())]);
        let body = json!({"metadata": {"name": "p"}, "deleteOptions": options});
        let answer = post(&registry, "eviction", body);
        assert_eq!(answer.map_or_else(|status| i64::from(status.code), |_| 201), code, "{options}");
        let left = registry.stored(&budgets(), "ns", "b").unwrap();
        assert_eq!(left.i64_at("status.disruptionsAllowed"), Some(allowed), "{options}");
        assert!(registry.stored(&pods(), "ns", "p").is_some());
    }
}
