use super::*;
use crate::testing::{Objects, admit};
use jiff::Timestamp;
use pintle_machinery::{Quantity, json};
use pintle_registry::{Registry, testing::now};
use std::{sync::Barrier, thread};

fn quota(spec: Value, hard: Value, used: Value) -> Value {
    json!({"metadata": {"name": "q", "namespace": "n"}, "spec": spec, "status": {"hard": hard, "used": used}})
}

/// Admits the object, and compares the refusal after "forbidden: ".
fn check(quota: Value, resource: &str, old: Option<Value>, spec: Value, refusal: &str) {
    let objects = Objects::new([("resourcequotas", quota)]);
    let object = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": spec});
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let plugin = ResourceQuota::default();
    let refused = admit(&plugin, &objects, operation, resource, "", object, old.as_ref()).err();
    let refused = refused.unwrap_or_default();
    assert_eq!(refused.split_once("forbidden: ").map_or(refused.as_str(), |(_, why)| why), refusal);
}

#[test]
fn objects_are_counted_by_both_their_names() {
    let full = || {
        quota(
            json!({}),
            json!({"count/secrets": "2", "secrets": "1"}),
            json!({"count/secrets": "0", "secrets": "1"}),
        )
    };
    check(full(), "configmaps", None, json!({}), "");
    check(
        full(),
        "secrets",
        None,
        json!({}),
        "exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1",
    );
    check(full(), "secrets", Some(json!({"metadata": {"name": "x", "namespace": "n"}})), json!({}), "");
    let uncounted = quota(json!({}), json!({"secrets": "1"}), json!({}));
    check(uncounted, "secrets", None, json!({}), "status unknown for quota: q, resources: secrets");
}

#[test]
fn services_are_counted_by_what_changes() {
    let full = || {
        let hard = json!({"services": "9", "services.nodeports": "1", "services.loadbalancers": "0"});
        quota(
            json!({}),
            hard,
            json!({"services": "1", "services.nodeports": "1", "services.loadbalancers": "0"}),
        )
    };
    let node_port = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let old = |spec: &Value| Some(json!({"metadata": {"name": "x", "namespace": "n"}, "spec": spec}));
    check(full(), "services", None, json!({"type": "ClusterIP", "ports": [{"port": 80}]}), "");
    check(full(), "services", old(&node_port), node_port.clone(), "");
    check(
        full(),
        "services",
        old(&json!({"type": "ClusterIP"})),
        node_port,
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1",
    );
    check(
        full(),
        "services",
        None,
        json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]}),
        "exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: \
         services.loadbalancers=0",
    );
}

#[test]
fn claims_are_counted_in_all_and_by_class() {
    let full = || {
        let hard = json!({"requests.storage": "3Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "0"});
        let used = json!({"requests.storage": "2Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "0"});
        quota(json!({}), hard, used)
    };
    let claim = |class: &str, size: &str| json!({"storageClassName": class, "resources": {"requests": {"storage": size}}});
    check(full(), "persistentvolumeclaims", None, claim("", "1Gi"), "");
    check(
        full(),
        "persistentvolumeclaims",
        None,
        claim("", "2Gi"),
        "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi",
    );
    check(
        full(),
        "persistentvolumeclaims",
        None,
        claim("gold", "1Gi"),
        "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, used: \
         gold.storageclass.storage.k8s.io/persistentvolumeclaims=0, limited: \
         gold.storageclass.storage.k8s.io/persistentvolumeclaims=0",
    );
    let old = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": claim("", "1Gi")});
    check(full(), "persistentvolumeclaims", Some(old), claim("", "2Gi"), "");
}

#[test]
fn pods_have_to_ask_for_what_is_limited() {
    let compute = || {
        let hard = json!({"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"});
        quota(json!({}), hard, json!({"pods": "1", "requests.cpu": "600m", "limits.memory": "600Mi"}))
    };
    let container = |name: &str, cpu: &str, memory: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}, "limits": {"memory": memory}}});
    check(
        compute(),
        "pods",
        None,
        json!({"containers": [container("c", "1m", "1Mi"), {"name": "d"}], "initContainers": [{"name": "a"}]}),
        "failed quota: q: must specify limits.memory for: a,d; requests.cpu for: a,d",
    );
    let whole = json!({"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "1Mi"}}});
    check(compute(), "pods", None, whole, "");
    check(compute(), "pods", None, json!({"containers": [container("c", "400m", "424Mi")]}), "");
    check(
        compute(),
        "pods",
        None,
        json!({"containers": [container("c", "600m", "300Mi")], "overhead": {"memory": "200Mi"}}),
        "exceeded quota: q, requested: limits.memory=500Mi,requests.cpu=600m, used: \
         limits.memory=600Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1",
    );
}

#[test]
fn scopes_choose_pods() {
    let none = |spec: Value| quota(spec, json!({"pods": "0"}), json!({"pods": "0"}));
    let exceeded = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
    let selector = |operator: &str| json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}]}});
    let rows = [
        (json!({"scopes": ["Terminating"]}), json!({}), ""),
        (json!({"scopes": ["Terminating"]}), json!({"activeDeadlineSeconds": 1}), exceeded),
        (json!({"scopes": ["NotTerminating", "NotBestEffort"]}), json!({}), exceeded),
        (selector("In"), json!({"priorityClassName": "high"}), exceeded),
        (selector("In"), json!({}), ""),
        (selector("NotIn"), json!({"priorityClassName": "low"}), exceeded),
        (
            json!({"scopes": ["CrossNamespacePodAffinity"]}),
            json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["a"]}]}}}),
            exceeded,
        ),
    ];
    for (spec, pod, refusal) in rows {
        check(none(spec), "pods", None, pod, refusal);
    }
}

#[test]
fn devices_are_counted_at_their_worst() {
    let claim = json!({"spec": {"devices": {"requests": [
        {"name": "a", "exactly": {"deviceClassName": "g", "allocationMode": "ExactCount", "count": 2}},
        {"name": "b", "firstAvailable": [
            {"deviceClassName": "g", "allocationMode": "ExactCount", "count": 3},
            {"deviceClassName": "h", "allocationMode": "All"},
        ]},
    ]}}});
    let usage = device_claim::usage(&claim, None);
    let number = |name: &str| usage.get(name).and_then(Quantity::as_i64);
    assert_eq!(number("g.deviceclass.resource.k8s.io/devices"), Some(5));
    assert_eq!(number("h.deviceclass.resource.k8s.io/devices"), Some(32));
}

/// The refusal of a claim for two devices of a class by a quota with these limits.
fn refusal_of_claim(class: &str, annotations: Value, others: Vec<(&str, Value)>, hard: &Value) -> String {
    let zero = hard.as_object().unwrap().keys().map(|name| (name.as_str().to_owned(), json!("0")));
    let full = quota(json!({}), hard.clone(), Value::from_iter(zero));
    let class_of =
        |name: &str, spec: Value| ("deviceclasses", json!({"metadata": {"name": name}, "spec": spec}));
    let classes =
        [class_of("g", json!({"extendedResourceName": "example.com/gpu"})), class_of("h", json!({}))];
    let objects = Objects::new([("resourcequotas", full)].into_iter().chain(classes).chain(others));
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true});
    let claim = json!({
        "metadata": {"name": "x", "namespace": "n", "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {
            "deviceClassName": class, "allocationMode": "ExactCount", "count": 2,
        }}]}},
    });
    let request = crate::testing::Request {
        name: "x".to_owned(),
        object: claim,
        objects,
        ..crate::testing::Request::new(Operation::Create, "resource.k8s.io", "v1", "resourceclaims", "n")
    };
    let refused = request.with(async |request| ResourceQuota::default().validate(request).await.err());
    refused.map_or(String::new(), |status| {
        status
            .message
            .split_once("exceeded quota: q, ")
            .map_or(status.message.clone(), |(_, why)| why.to_owned())
    })
}

#[test]
fn claims_are_counted_by_the_extended_resources_of_their_classes() {
    let exceeded =
        |name: &str, amount: &str| format!("requested: {name}={amount}, used: {name}=0, limited: {name}=1");
    let (named, implicit) = ("requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/h");
    let check = |class: &str, name: &str, refusal: &str| {
        assert_eq!(
            refusal_of_claim(class, json!({}), Vec::new(), &json!({name: "1"})),
            refusal,
            "{class} {name}"
        );
    };
    check("g", named, &exceeded(named, "2"));
    check("h", implicit, &exceeded(implicit, "2"));
    check("h", named, "");
    check("g", implicit, "");
    check("g", "requests.example.com/other", "");
    check("k", "requests.deviceclass.resource.kubernetes.io/k", "");
}

#[test]
fn claims_for_extended_resources_of_a_pod_are_counted_beyond_the_pod() {
    let annotations = json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    let pod = |gpus: &str, status: Value| {
        let requests = json!({"example.com/gpu": gpus});
        let spec = json!({"containers": [{"name": "c", "resources": {"requests": requests}}]});
        (
            "pods",
            json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec, "status": status}),
        )
    };
    let name = "requests.example.com/gpu";
    let check = |annotations: &Value, others: Vec<(&str, Value)>, amount: Option<&str>| {
        let refusal = refusal_of_claim("g", annotations.clone(), others, &json!({name: "0"}));
        let expected = amount
            .map(|amount| format!("requested: {name}={amount}, used: {name}=0, limited: {name}=0"))
            .unwrap_or_default();
        assert_eq!(refusal, expected);
    };
    let of = |claim: &str| json!({"extendedResourceClaimStatus": {"resourceClaimName": claim}});
    check(&annotations, vec![pod("2", json!({}))], None);
    check(&annotations, vec![pod("1", json!({}))], Some("1"));
    check(&annotations, vec![pod("2", of("x"))], None);
    check(&annotations, vec![pod("2", of("y"))], Some("2"));
    check(&annotations, Vec::new(), Some("2"));
    check(&json!({}), vec![pod("2", json!({}))], Some("2"));
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true});
    let metadata =
        json!({"name": "w", "namespace": "n", "annotations": annotations, "ownerReferences": [owner]});
    let other = ("resourceclaims", json!({"metadata": metadata}));
    check(&annotations, vec![pod("2", json!({})), other], Some("2"));
}

#[test]
fn pods_that_are_over_are_objects_only() {
    let now: Timestamp = "2024-01-01T00:01:00Z".parse().unwrap();
    let computes = |pod: Value| pod::usage(&pod, now).contains_key("pods");
    assert!(computes(json!({})));
    assert!(!computes(json!({"status": {"phase": "Succeeded"}})));
    let deleted =
        |time: &str| json!({"metadata": {"deletionTimestamp": time, "deletionGracePeriodSeconds": 30}});
    assert!(computes(deleted("2024-01-01T00:00:40Z")));
    assert!(!computes(deleted("2024-01-01T00:00:20Z")));
}

#[test]
fn resized_containers_count_what_they_have_and_what_they_want() {
    let pod = |reason: &str| {
        json!({
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            "status": {
                "conditions": [{"type": "PodResizePending", "reason": reason}],
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1500m"}}],
            },
        })
    };
    let cpu = |reason: &str| {
        pod::usage(&pod(reason), Timestamp::UNIX_EPOCH).get("requests.cpu").map(Quantity::milli_value)
    };
    assert_eq!(cpu("Deferred"), Some(2000));
    assert_eq!(cpu("Infeasible"), Some(1500));
}

/// Requests that come at the same time have read the same usage. Each is checked again when its usage is added.
#[test]
fn requests_at_the_same_time_do_not_exceed_the_quota_together() {
    const THREADS: usize = 8;
    const ALLOWED: usize = 3;
    let plugin = ResourceQuota::default();
    for round in 0..50 {
        let hard = json!({"count/configmaps": ALLOWED.to_string()});
        let quota = quota(json!({}), hard, json!({"count/configmaps": "0"}));
        let objects = Objects::new([("resourcequotas", quota)]);
        let start = Barrier::new(THREADS);
        let request = |number: usize| {
            let object = json!({"metadata": {"name": format!("x-{number}"), "namespace": "n"}});
            start.wait();
            admit(&plugin, &objects, Operation::Create, "configmaps", "", object, None).err()
        };
        let request = &request;
        let refusals: Vec<Option<String>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || request(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused: Vec<&String> = refusals.iter().flatten().collect();
        assert_eq!(refused.len(), THREADS - ALLOWED, "{round}: {refused:?}");
        for refusal in refused {
            let expected = format!(
                "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps={ALLOWED}, \
                 limited: count/configmaps={ALLOWED}"
            );
            assert!(refusal.ends_with(&expected), "{round}: {refusal}");
        }
        let quotas = GroupResource::new("", "resourcequotas");
        let stored = now(Registry::get(&objects, &quotas, "n", "q")).unwrap();
        assert_eq!(stored.map_at("status.used")["count/configmaps"], ALLOWED.to_string(), "{round}");
    }
}
