use super::*;
use crate::Config;

fn versions_of(group: &str, resource: &str) -> Vec<String> {
    let resources = crate::resources(&Config::default());
    let found = resources.iter().find(|found| {
        let id = &found.resource;
        id.group == group && id.resource == resource && found.conversion.is_none()
    });
    let versions = &found.unwrap().stored_versions;
    versions.iter().map(|version| version.kind.group_version().to_string()).collect()
}

#[test]
fn every_version_that_upstream_reads_is_known() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("", "pods", &[]),
        ("", "events", &["events.k8s.io/v1", "events.k8s.io/v1beta1"]),
        ("apps", "deployments", &["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"]),
        ("apps", "replicasets", &["apps/v1beta2", "extensions/v1beta1"]),
        ("autoscaling", "horizontalpodautoscalers", &["autoscaling/v1"]),
        ("batch", "cronjobs", &["batch/v1beta1"]),
        ("discovery.k8s.io", "endpointslices", &["discovery.k8s.io/v1beta1"]),
        ("networking.k8s.io", "ingresses", &["networking.k8s.io/v1beta1", "extensions/v1beta1"]),
        ("policy", "poddisruptionbudgets", &["policy/v1beta1"]),
        (
            "flowcontrol.apiserver.k8s.io",
            "flowschemas",
            &[
                "flowcontrol.apiserver.k8s.io/v1beta1",
                "flowcontrol.apiserver.k8s.io/v1beta2",
                "flowcontrol.apiserver.k8s.io/v1beta3",
            ],
        ),
    ];
    for (group, resource, expected) in rows {
        assert_eq!(versions_of(group, resource), *expected, "{resource}.{group}");
    }
}

#[test]
fn every_conversion_leads_to_the_stored_version() {
    let declared = [crate::resources(&Config::default()), crate::resources_off_by_default()].concat();
    let convert = |api_version: &str, kind: &str, object: Value| {
        let (group, version) = api_version.split_once('/').unwrap();
        let version = stored_version(GroupVersionKind::new(group, version, kind), &declared);
        (version.unwrap().to_storage)(object)
    };
    let selector = |selector: Value| json!({"spec": {"selector": selector}});
    let rows = [
        (
            "extensions/v1beta1",
            "Deployment",
            json!({"spec": {"replicas": 1, "rollbackTo": {"revision": 3}}}),
            json!({
                "metadata": {"annotations": {"deprecated.deployment.rollback.to": "3"}},
                "spec": {"replicas": 1},
            }),
        ),
        ("apps/v1beta2", "Deployment", json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 1}})),
        (
            "extensions/v1beta1",
            "DaemonSet",
            json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"templateGeneration": 7}}),
            json!({
                "metadata": {"annotations": {"a": "b", "deprecated.daemonset.template.generation": "7"}},
                "spec": {},
            }),
        ),
        (
            "apps/v1beta1",
            "StatefulSet",
            json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}),
            json!({"spec": {"volumeClaimTemplates": [
                {"metadata": {"name": "data"}, "kind": "PersistentVolumeClaim", "apiVersion": "v1"},
            ]}}),
        ),
        (
            "discovery.k8s.io/v1beta1",
            "EndpointSlice",
            json!({"endpoints": [
                {"nodeName": "n", "topology": {"kubernetes.io/hostname": "n", "topology.kubernetes.io/zone": "z"}},
                {"nodeName": "n", "topology": {"kubernetes.io/hostname": "m", "x": "y"}},
                {"addresses": ["10.0.0.1"]},
            ]}),
            json!({"endpoints": [
                {"nodeName": "n", "zone": "z"},
                {"nodeName": "n", "deprecatedTopology": {"kubernetes.io/hostname": "m", "x": "y"}},
                {"addresses": ["10.0.0.1"]},
            ]}),
        ),
        (
            "networking.k8s.io/v1beta1",
            "Ingress",
            json!({"spec": {
                "backend": {"serviceName": "a", "servicePort": 80},
                "rules": [{"host": "h", "http": {"paths": [
                    {"path": "/", "backend": {"serviceName": "b", "servicePort": "web"}},
                    {"path": "/r", "backend": {"resource": {"kind": "K", "name": "n"}}},
                ]}}],
            }}),
            json!({"spec": {
                "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}},
                "rules": [{"host": "h", "http": {"paths": [
                    {"path": "/", "backend": {"service": {"name": "b", "port": {"name": "web"}}}},
                    {"path": "/r", "backend": {"resource": {"kind": "K", "name": "n"}}},
                ]}}],
            }}),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1beta2",
            "PriorityLevelConfiguration",
            json!({"spec": {"limited": {"assuredConcurrencyShares": 5}}}),
            json!({"spec": {"limited": {"nominalConcurrencyShares": 5}}}),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "PriorityLevelConfiguration",
            json!({
                "metadata": {"annotations": {"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}},
                "spec": {"limited": {}},
            }),
            json!({"metadata": {}, "spec": {"limited": {"nominalConcurrencyShares": 0}}}),
        ),
        (
            "node.k8s.io/v1alpha1",
            "RuntimeClass",
            json!({"spec": {"runtimeHandler": "runc", "overhead": {"podFixed": {"cpu": "1"}}}}),
            json!({"handler": "runc", "overhead": {"podFixed": {"cpu": "1"}}}),
        ),
        (
            "policy/v1beta1",
            "PodDisruptionBudget",
            selector(json!({})),
            selector(json!({"matchExpressions": [{"key": EMPTY_SELECTOR, "operator": "Exists"}]})),
        ),
        (
            "policy/v1beta1",
            "PodDisruptionBudget",
            selector(json!({"matchExpressions": [{"key": EMPTY_SELECTOR, "operator": "DoesNotExist"}]})),
            selector(json!({})),
        ),
        (
            "policy/v1beta1",
            "PodDisruptionBudget",
            selector(json!({"matchLabels": {"app": "web"}})),
            selector(json!({"matchLabels": {"app": "web"}})),
        ),
        (
            "rbac.authorization.k8s.io/v1alpha1",
            "RoleBinding",
            json!({"subjects": [
                {"kind": "User", "name": "*", "apiVersion": "rbac.authorization.k8s.io/v1alpha1"},
                {"kind": "ServiceAccount", "name": "sa", "namespace": "ns", "apiVersion": "v1"},
            ]}),
            json!({"subjects": [
                {"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
            ]}),
        ),
        (
            "resource.k8s.io/v1beta1",
            "ResourceClaim",
            json!({"spec": {"devices": {"requests": [
                {"name": "a", "deviceClassName": "gpu", "count": 2},
                {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]},
            ]}}}),
            json!({"spec": {"devices": {"requests": [
                {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
                {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]},
            ]}}}),
        ),
        (
            "resource.k8s.io/v1beta1",
            "ResourceSlice",
            json!({"spec": {"devices": [{"name": "a", "basic": {"attributes": {"x": {"int": 1}}}}]}}),
            json!({"spec": {"devices": [{"name": "a", "attributes": {"x": {"int": 1}}}]}}),
        ),
        (
            "batch/v1beta1",
            "CronJob",
            json!({"spec": {"schedule": "* * * * *"}}),
            json!({"spec": {"schedule": "* * * * *"}}),
        ),
    ];
    for (api_version, kind, stored, expected) in rows {
        let mut converted = convert(api_version, kind, stored);
        converted.remove_at("apiVersion");
        assert_eq!(converted, expected, "{api_version} {kind}");
    }
}

#[test]
fn every_special_conversion_is_used() {
    for (group, version, kind, _) in SPECIAL {
        let known = VERSIONS.iter().any(|known| {
            (version.is_empty() || version == *known)
                && stored_version(GroupVersionKind::new(group, *known, kind), &[]).is_some()
        });
        assert!(known, "{group}/{version} {kind}");
    }
}
