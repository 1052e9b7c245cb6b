//! Tests the table cells of each kind.

use pintle_machinery::{Value, json};

/// Compares the cells of one object, except name and age.
fn check(resource: &str, object: Value, expected: Value) {
    let now = "2026-01-01T00:10:00Z".parse().expect("a time");
    let mut found = pintle_api::resources(&pintle_api::Config::default());
    found.retain(|declared| declared.group_resource().to_string() == resource);
    let declared = found.last().unwrap_or_else(|| panic!("{resource} is declared"));
    let names: Vec<String> = declared.table.columns().into_iter().map(|column| column.name).collect();
    let cells: Vec<Value> = declared
        .table
        .cells(&object, now)
        .into_iter()
        .enumerate()
        .filter(|(index, _)| !names.get(*index).is_none_or(|name| name == "Name" || name == "Age"))
        .map(|(_, cell)| cell)
        .collect();
    assert_eq!(Value::from(cells), expected, "{resource}");
}

#[test]
fn storage_kinds() {
    check(
        "persistentvolumeclaims",
        json!({
            "spec": {"volumeName": "v", "storageClassName": "slow", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadOnlyMany", "ReadWriteOnce"]},
        }),
        json!(["Bound", "v", "1Gi", "RWO,ROX", "slow", "<unset>", "Filesystem"]),
    );
    check(
        "persistentvolumeclaims",
        json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "status": {"phase": "Pending", "capacity": {"storage": "1Gi"}},
        }),
        json!(["Terminating", "", "", "", "old", "<unset>", "<unset>"]),
    );
    check(
        "persistentvolumes",
        json!({
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"},
                "volumeAttributesClassName": "gold"},
            "status": {"phase": "Bound", "reason": "R"},
        }),
        json!(["5Gi", "RWOP", "Retain", "Bound", "n/c", "", "gold", "R", "<unset>"]),
    );
    check(
        "storageclasses.storage.k8s.io",
        json!({"provisioner": "p", "allowVolumeExpansion": true, "volumeBindingMode": "WaitForFirstConsumer"}),
        json!(["p", "Delete", "WaitForFirstConsumer", true]),
    );
    check(
        "csidrivers.storage.k8s.io",
        json!({"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}],
            "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
        json!([true, false, false, "a,b", false, "Persistent,Ephemeral"]),
    );
}

#[test]
fn workloads() {
    let containers = json!([{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:2"}]);
    let template = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": containers}});
    check("podtemplates", json!({"template": template}), json!(["a,b", "i:1,i:2", "x=y"]));
    check(
        "daemonsets.apps",
        json!({
            "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": template},
            "status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1},
        }),
        json!([3, 2, 1, 0, 0, "<none>", "a,b", "i:1,i:2", "x=y"]),
    );
    check(
        "statefulsets.apps",
        json!({"spec": {"replicas": 3, "template": template}, "status": {"readyReplicas": 1}}),
        json!(["1/3", "a,b", "i:1,i:2"]),
    );
    let job = |spec: Value, status: Value, expected: Value| {
        check("jobs.batch", json!({"spec": spec, "status": status}), expected);
    };
    job(json!({}), json!({}), json!(["Running", "0/1", "", "", "", "<none>"]));
    job(
        json!({"parallelism": 4}),
        json!({"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"}),
        json!(["Running", "1/1 of 4", "10m", "", "", "<none>"]),
    );
    job(
        json!({"completions": 2}),
        json!({"succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:05Z",
            "conditions": [{"type": "Suspended", "status": "True"}, {"type": "Complete", "status": "True"}]}),
        json!(["Complete", "2/2", "65s", "", "", "<none>"]),
    );
    check(
        "cronjobs.batch",
        json!({"spec": {"schedule": "* * * * *", "suspend": false},
            "status": {"active": [{}, {}], "lastScheduleTime": "2026-01-01T00:09:00Z"}}),
        json!(["* * * * *", "<none>", "False", 2, "60s", "", "", "<none>"]),
    );
    check(
        "controllerrevisions.apps",
        json!({"revision": 7, "metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "o"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": true}]}}),
        json!(["statefulset.apps/s", 7]),
    );
}

#[test]
fn autoscalers_show_two_metrics() {
    let utilization = |percent: i64| json!({"type": "Utilization", "averageUtilization": percent});
    check(
        "horizontalpodautoscalers.autoscaling",
        json!({
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5, "minReplicas": 2,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": utilization(80)}},
                    {"type": "External", "external": {"target": {"averageValue": "30"}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}}]},
            "status": {"currentReplicas": 3, "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50}}}]},
        }),
        json!(["Deployment/d", "cpu: 50%/80%, <unknown>/30 (avg) + 1 more...", "2", 5, 3]),
    );
    check(
        "horizontalpodautoscalers.autoscaling",
        json!({"spec": {"metrics": [
            {"type": "Object", "object": {"target": {"value": "2k"}}},
            {"type": "ContainerResource", "containerResource": {"name": "memory", "target": {}}}]},
            "status": {"currentMetrics": [{"type": "Object", "object": {"current": {"value": "1k"}}}]}}),
        json!(["/", "1k/2k, memory: <unknown>/<auto>", "<unset>", 0, 0]),
    );
}

#[test]
fn network_kinds() {
    let rule = |host: &str| json!({"host": host});
    check(
        "ingresses.networking.k8s.io",
        json!({
            "spec": {"ingressClassName": "c", "tls": [{}],
                "rules": [rule("a"), {}, rule("b"), rule("c"), {}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "z"}, {"ip": "10.0.0.1"}, {"hostname": "z"}]}},
        }),
        json!(["c", "a,b,c + 2 more...", "10.0.0.1,z", "80, 443"]),
    );
    check("ingresses.networking.k8s.io", json!({}), json!(["<none>", "*", "", "80"]));
    check(
        "endpointslices.discovery.k8s.io",
        json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}, {}],
            "endpoints": [{"addresses": ["1", "2"]}, {"addresses": ["3", "4"]}]}),
        json!(["IPv4", "80,x,*", "1,2,3 + 1 more..."]),
    );
    check(
        "ipaddresses.networking.k8s.io",
        json!({"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}}),
        json!(["services/n/s"]),
    );
    check(
        "ingressclasses.networking.k8s.io",
        json!({"spec": {"controller": "c", "parameters": {"apiGroup": "g.io", "kind": "K", "name": "k"}}}),
        json!(["c", "K.g.io/k"]),
    );
}

#[test]
fn policy_kinds() {
    check(
        "poddisruptionbudgets.policy",
        json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}}),
        json!(["50%", "N/A", 2]),
    );
    check(
        "resourcequotas",
        json!({"status": {"hard": {"pods": "10", "limits.cpu": "4", "cpu": "2"}, "used": {"pods": "3"}}}),
        json!(["cpu: 0/2, pods: 3/10", "limits.cpu: 0/4"]),
    );
    check(
        "rolebindings.rbac.authorization.k8s.io",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
            {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
        json!(["Role/r", "u, v", "", "n/s"]),
    );
    check(
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5}}}),
        json!(["Limited", 5, "<none>", "<none>", "<none>"]),
    );
    check(
        "flowschemas.flowcontrol.apiserver.k8s.io",
        json!({"spec": {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 9}}),
        json!(["p", 9, "<none>", "?"]),
    );
    check(
        "certificatesigningrequests.certificates.k8s.io",
        json!({"spec": {"username": "u", "expirationSeconds": 86400},
            "status": {"conditions": [{"type": "Approved"}, {"type": "Failed"}], "certificate": "eA=="}}),
        json!(["<none>", "u", "24h", "Approved,Failed,Issued"]),
    );
    check(
        "resourceclaims.resource.k8s.io",
        json!({"status": {"allocation": {}, "reservedFor": [{}]}}),
        json!(["allocated,reserved"]),
    );
    check(
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "g/v1", "kind": "K"}}}),
        json!([1, "g/v1/K"]),
    );
}
