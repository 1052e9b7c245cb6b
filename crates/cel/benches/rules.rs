//! Measures typical validation rules on objects without a schema: evaluation of a compiled rule, and compilation.

use criterion::{Criterion, criterion_group, criterion_main};
use pintle_cel::types::Type;
use pintle_cel::{Activation, Environment, Value};
use pintle_machinery::json;
use std::hint::black_box;

const RULES: [(&str, &str); 7] = [
    ("compare two fields", "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas"),
    ("presence and text", "!has(self.name) || self.name.startsWith('web-') && size(self.name) < 64"),
    ("match a pattern", "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"),
    ("all of 100 items", "self.ports.all(p, p.port > 0 && p.port < 65536)"),
    ("100 items are unique", "self.ports.all(p, self.ports.exists_one(q, q.port == p.port))"),
    ("map, filter and join 100", "self.ports.filter(p, p.port > 50).map(p, p.name).join(',').size() > 0"),
    ("quantities", "quantity(self.cpu).isLessThan(quantity('2'))"),
];

fn benches(criterion: &mut Criterion) {
    let ports: Vec<_> =
        (0..100).map(|port| json!({"name": format!("port-{port}"), "port": port + 1})).collect();
    let object = json!({
        "name": "web-frontend", "replicas": 3, "minReplicas": 1, "maxReplicas": 10, "cpu": "500m", "ports": ports,
    });
    let environment = Environment::new().with_variable("self", Type::Dyn);
    let mut group = criterion.benchmark_group("evaluate");
    for (name, rule) in RULES {
        let program = environment.compile(rule).expect("it compiles");
        let activation = Activation::new().with("self", Value::from_json(&object));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut budget = 1_000_000;
                black_box(
                    program.evaluate(black_box(&activation), &mut budget).expect("it evaluates").as_bool(),
                )
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("compile");
    for (name, rule) in RULES {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(environment.compile(black_box(rule)).is_ok()));
        });
    }
    group.finish();
}

criterion_group!(rules, benches);
criterion_main!(rules);
