//! Measures the field manager on a pod of 3 KB: the bookkeeping that every write does, and an apply.

mod support;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use pintle_machinery::{
    Value, ValueExt,
    codec::json,
    json,
    managed_fields::{FieldManager, OneVersion},
};
use pintle_schema::{Schema, SchemaRef};
use std::hint::black_box;
use support::pod;

fn schema() -> SchemaRef<'static> {
    Schema::builtin().by_type_name("k8s.io/api/core/v1.Pod").expect("the schema has pods")
}

fn manager<'a>(name: &'a str, subresource: &'a str) -> FieldManager<'a> {
    FieldManager {
        manager: name,
        kind: "Pod",
        api_version: "v1",
        subresource,
        now: Timestamp::UNIX_EPOCH,
        schema: schema(),
        reset_fields: if subresource.is_empty() { &["status"] } else { &["spec"] },
        empty_fields: &[],
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
    let applier = FieldManager { kind: "ConfigMap", schema: config_maps, ..manager("applier", "") };
    let config = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}},
            "data": {"one": value, "two": "2", "three": "3"}})
    };
    let applied = applier.apply(None, &config("1"), false).expect("nobody else owns anything").object;
    let changed = config("2");
    criterion.bench_function("managed_fields/apply_config_map", |bencher| {
        bencher.iter(|| applier.apply(Some(black_box(&applied)), &changed, false));
    });

    let applier = manager("applier", "");
    let mut config = pod();
    for part in ["status", "metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp"] {
        config.remove_at(part);
    }
    config.set("kind", "Pod");
    config.set("apiVersion", "v1");
    let applied = applier.apply(Some(&live), &config, true).expect("it is forced").object;
    criterion.bench_function("managed_fields/apply_pod_without_change", |bencher| {
        bencher.iter(|| applier.apply(Some(black_box(&applied)), &config, false));
    });
    config.set("metadata.labels.seen", "1");
    criterion.bench_function("managed_fields/apply_pod", |bencher| {
        bencher.iter(|| applier.apply(Some(black_box(&applied)), &config, false));
    });
}

criterion_group!(benches, managed_fields);
criterion_main!(benches);
