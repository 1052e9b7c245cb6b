//! The pod that several benches work on.

use pintle_machinery::{Value, json};

pub(crate) fn condition(name: &str, status: &str) -> Value {
    json!({
        "type": name, "status": status, "observedGeneration": 1, "lastProbeTime": null,
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    })
}

/// A pod of two containers as a Deployment makes it.
pub(crate) fn pod() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "registry.example.com/team/app:1.2.3", "imagePullPolicy": "IfNotPresent",
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-west-1"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5},
            "volumeMounts": [
                {"mountPath": "/etc/app", "name": "config", "readOnly": true},
                {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": true},
            ],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "app-5f6d8c7b9-x2x4z", "generateName": "app-5f6d8c7b9-", "namespace": "team",
            "uid": "0b5d3c1e-8a0c-4d5e-9d0a-2f6f3a1b7c11", "resourceVersion": "12345",
            "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"app": "app", "pod-template-hash": "5f6d8c7b9"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app-5f6d8c7b9",
                "uid": "4a1b2c3d-0000-4000-8000-000000000001", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "containers": [container("app"), container("side")], "nodeName": "node-17", "restartPolicy": "Always",
            "volumes": [{"name": "config", "configMap": {"name": "app", "defaultMode": 420}}, {"name": "token", "projected": {}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Pending", "qosClass": "Burstable",
            "conditions": [condition("PodScheduled", "True"), condition("Initialized", "True"), condition("Ready", "False")],
        },
    })
}
