//! Measures the cost of a custom resource of 2 KB beyond decoding: coercion, defaulting and validation by its schema;
//! and the one-time cost of a definition.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pintle_apiextensions::structural::{InvalidMetadata, StructuralSchema};
use pintle_machinery::{Value, ValueExt, json};

/// A schema of the size that operators use: nested objects as in a pod template, limits and alternatives.
fn definition() -> Value {
    let quantity = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"});
    let resources = json!({"type": "object", "properties": {
        "limits": {"type": "object", "additionalProperties": quantity},
        "requests": {"type": "object", "additionalProperties": quantity}}});
    let container = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "image": {"type": "string", "description": "d".repeat(300)},
        "imagePullPolicy": {"type": "string", "enum": ["Always", "Never", "IfNotPresent"], "default": "IfNotPresent"},
        "env": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}},
        "ports": {"type": "array", "items": {"type": "object", "required": ["containerPort"], "properties": {
            "containerPort": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "default": "TCP"}}}},
        "resources": resources}});
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["replicas"], "properties": {
            "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
            "paused": {"type": "boolean", "default": false},
            "since": {"type": "string", "format": "date-time"},
            "containers": {"type": "array", "minItems": 1, "maxItems": 100, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": container},
            "selector": {"type": "object", "additionalProperties": {"type": "string"}}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}

fn object() -> Value {
    let containers: Vec<Value> = (0..5)
        .map(|index| {
            json!({"name": format!("container-{index}"), "image": "registry.example.com/some/image:v1.2.3",
                "env": (0..6).map(|index| json!({"name": format!("NAME_{index}"), "value": "some value"})).collect::<Vec<_>>(),
                "ports": [{"containerPort": 8080 + index}, {"containerPort": 9090, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 1, "memory": "512Mi"}}})
        })
        .collect();
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "default"},
        "spec": {"replicas": 3, "since": "2024-01-01T00:00:00Z", "containers": containers,
            "selector": {"app": "thing", "tier": "web"}}})
}

fn structural(criterion: &mut Criterion) {
    let definition = definition();
    let Ok(schema) = StructuralSchema::new(&definition) else { return };
    let mut complete = object();
    schema.set_defaults(&mut complete);
    assert!(schema.validate(&complete, None).is_empty());
    let mut wrong = complete.clone();
    wrong.set("spec.replicas", -1);

    let mut group = criterion.benchmark_group("structural");
    group.bench_function("read a schema", |bencher| bencher.iter(|| StructuralSchema::new(&definition)));
    group.bench_function("coerce and default", |bencher| {
        let run = |mut object| {
            let unknown = schema.coerce(&mut object, InvalidMetadata::Refuse);
            schema.set_defaults(&mut object);
            (object, unknown)
        };
        bencher.iter_batched(object, run, BatchSize::SmallInput);
    });
    group.bench_function("validate", |bencher| bencher.iter(|| schema.validate(&complete, None)));
    group.bench_function("validate an update", |bencher| {
        bencher.iter(|| schema.validate(&complete, Some(&complete)))
    });
    group.bench_function("validate what is wrong", |bencher| bencher.iter(|| schema.validate(&wrong, None)));
    group.finish();
}

criterion_group!(benches, structural);
criterion_main!(benches);
