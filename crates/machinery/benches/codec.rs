//! Measures decoding and encoding of a pod of 3 KB, which every write does at least once.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pintle_machinery::codec::{json, protobuf, yaml};
use pintle_schema::Schema;

const POD: &[u8] = include_bytes!("pod.json");

fn codec(criterion: &mut Criterion) {
    let Some(schema) = Schema::builtin().by_kind("", "v1", "Pod") else { return };
    let Ok(decoded) = json::decode(POD, schema) else { return };
    let tree = decoded.value;
    let text = json::encode(&tree, schema);
    let Some(message) = protobuf::encode(&tree, schema) else { return };
    let yaml_text = yaml::encode(&tree, schema);

    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("json type meta", |bencher| bencher.iter(|| json::type_meta(&text)));
    group.bench_function("json decode", |bencher| bencher.iter(|| json::decode(&text, schema)));
    group.bench_function("json encode", |bencher| bencher.iter(|| json::encode(&tree, schema)));
    group.bench_function("json decode without schema, by serde_json", |bencher| {
        bencher.iter(|| serde_json::from_slice::<pintle_machinery::Value>(&text));
    });
    group.bench_function("protobuf decode", |bencher| bencher.iter(|| protobuf::decode(&message, schema)));
    group.bench_function("protobuf encode", |bencher| bencher.iter(|| protobuf::encode(&tree, schema)));
    group.bench_function("yaml decode", |bencher| bencher.iter(|| yaml::decode(&yaml_text, schema)));
    group.bench_function("yaml to json", |bencher| bencher.iter(|| yaml::to_json(&yaml_text)));
    group.bench_function("yaml encode", |bencher| bencher.iter(|| yaml::encode(&tree, schema)));
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
