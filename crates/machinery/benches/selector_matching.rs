//! Measures selectors on the labels of 5,000 objects, as a list by label evaluates them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pintle_machinery::{FieldSelector, LabelSelector};
use std::collections::BTreeMap;
use std::hint::black_box;

const OBJECTS: usize = 5_000;

fn benches(criterion: &mut Criterion) {
    let labels: Vec<BTreeMap<String, String>> = (0..OBJECTS)
        .map(|number| {
            let pairs = [("app", number % 50), ("tier", number % 3), ("pod-template-hash", number % 97)];
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect()
        })
        .collect();
    let mut group = criterion.benchmark_group("selector matching");
    group.throughput(Throughput::Elements(OBJECTS as u64));
    for text in ["app=7", "app in (1,2,3),tier!=0", "app,!legacy,tier>1"] {
        let selector = LabelSelector::parse(text).expect("a selector");
        group.bench_function(text, |bencher| {
            bencher.iter(|| {
                let matching = labels
                    .iter()
                    .filter(|labels| selector.matches(|key| labels.get(key).map(String::as_str)));
                black_box(matching.count())
            });
        });
    }
    let selector = FieldSelector::parse("spec.nodeName=7,status.phase!=Failed").expect("a selector");
    group.bench_function("spec.nodeName=7,status.phase!=Failed", |bencher| {
        bencher.iter(|| {
            let matching = labels.iter().filter(|labels| {
                selector.matches(|field| match field {
                    "spec.nodeName" => labels.get("app").map(String::as_str),
                    _ => Some("Running"),
                })
            });
            black_box(matching.count())
        });
    });
    group.finish();
}

criterion_group!(group, benches);
criterion_main!(group);
