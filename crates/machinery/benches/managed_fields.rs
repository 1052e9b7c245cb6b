//! The bookkeeping of fields for a pod of 5 KB: what every write pays, and an apply.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use pintle_machinery::{
    Value, ValueExt,
    codec::json,
    managed_fields::{FieldManager, OneVersion},
};
use pintle_schema::{Schema, SchemaRef};
use serde_json::json;
use std::hint::black_box;

fn condition(name: &str, status: &str) -> Value {
    json!({
        "type": name, "status": status, "observedGeneration": 1, "lastProbeTime": null,
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    })
}

/// A pod of two containers as a Deployment makes it.
fn pod() -> Value {
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

fn schema() -> SchemaRef<'static> {
    Schema::builtin().by_type_name("k8s.io/api/core/v1.Pod").expect("the schema has pods")
}

fn manager<'a>(name: &'a str, subresource: &'a str) -> FieldManager<'a> {
    FieldManager {
        manager: name,
        api_version: "v1",
        subresource,
        now: Timestamp::UNIX_EPOCH,
        schema: schema(),
        reset_fields: if subresource.is_empty() { &["status"] } else { &["spec"] },
        versions: &OneVersion,
    }
}

fn managed_fields(criterion: &mut Criterion) {
    let bare = json::from_value(&pod(), schema()).expect("the pod is one").value;
    let mut live = bare.clone();
    manager("controller", "").update(None, &mut live);
    let mut status = live.clone();
    status.set("status.phase", "Running");
    manager("kubelet", "status").update(Some(&live), &mut status);
    let live = status;
    let update = |criterion: &mut Criterion, name: &str, manager: FieldManager<'_>, new: &Value| {
        criterion.bench_function(name, |bencher| {
            bencher.iter_batched(
                || new.clone(),
                |mut new| {
                    manager.update(Some(black_box(&live)), &mut new);
                    new
                },
                BatchSize::SmallInput,
            );
        });
    };
    criterion.bench_function("managed_fields/create", |bencher| {
        bencher.iter_batched(
            || bare.clone(),
            |mut new| {
                manager("controller", "").update(None, &mut new);
                new
            },
            BatchSize::SmallInput,
        );
    });
    update(criterion, "managed_fields/update_without_change", manager("controller", ""), &live);
    let mut labelled = live.clone();
    labelled.set("metadata.labels.seen", "1");
    update(criterion, "managed_fields/update_a_label", manager("controller", ""), &labelled);
    let mut image = live.clone();
    for container in image.items_at_mut("spec.containers").iter_mut().take(1) {
        container.set("image", "registry.example.com/team/app:2");
    }
    update(criterion, "managed_fields/update_an_image_of_another_manager", manager("other", ""), &image);
    let mut ready = live.clone();
    for condition in ready.items_at_mut("status.conditions").iter_mut().skip(2) {
        condition.set("status", "True");
    }
    update(criterion, "managed_fields/update_status", manager("kubelet", "status"), &ready);

    let config_maps =
        Schema::builtin().by_type_name("k8s.io/api/core/v1.ConfigMap").expect("the schema has them");
    let applier = FieldManager { schema: config_maps, ..manager("applier", "") };
    let config = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}},
            "data": {"one": value, "two": "2", "three": "3"}})
    };
    let applied = applier.apply(None, &config("1"), false).expect("nobody else owns anything");
    let changed = config("2");
    criterion.bench_function("managed_fields/apply_config_map", |bencher| {
        bencher.iter(|| applier.apply(Some(black_box(&applied)), &changed, false));
    });
}

criterion_group!(benches, managed_fields);
criterion_main!(benches);
