//! Measures a strategic merge of a status patch onto a pod of 3 KB, the frequent write of a kubelet.

mod support;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pintle_machinery::patch::strategic;
use pintle_machinery::{Value, json};
use pintle_schema::Schema;
use std::hint::black_box;
use support::{condition, pod};

fn status_patch() -> Value {
    json!({
        "metadata": {"uid": "0b5d3c1e-8a0c-4d5e-9d0a-2f6f3a1b7c11"},
        "status": {
            "$setElementOrder/conditions":
                [{"type": "PodReadyToStartContainers"}, {"type": "Initialized"}, {"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [
                condition("PodReadyToStartContainers", "True"), {"type": "Ready", "status": "True"},
            ],
            "containerStatuses": [{"name": "app", "ready": true, "restartCount": 0}, {"name": "side", "ready": true}],
            "phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
        },
    })
}

fn benches(criterion: &mut Criterion) {
    let schema = Schema::builtin().by_kind("", "v1", "Pod").expect("pods are built in");
    let (pod, patch) = (pod(), status_patch());
    criterion.bench_function("strategic merge of a status patch onto a pod", |bencher| {
        bencher.iter_batched(
            || (pod.clone(), patch.clone()),
            |(pod, patch)| black_box(strategic::apply(pod, patch, schema)),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(group, benches);
criterion_main!(group);
