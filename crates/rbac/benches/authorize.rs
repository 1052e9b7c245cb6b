//! Measures an authorization check with many bindings.

use criterion::{Criterion, criterion_group, criterion_main};
use pintle_auth::authz::Attributes;
use pintle_machinery::UserInfo;
use pintle_rbac::{Index, PolicyRule, Rbac, RoleBinding, RoleRef, Subject};
use std::hint::black_box;

const BINDINGS: usize = 10_000;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A role with as many rules as `edit` has.
fn role() -> Vec<PolicyRule> {
    let rule = |number: usize| PolicyRule {
        verbs: texts(&["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]),
        api_groups: vec![if number == 14 { String::new() } else { format!("group-{number}.example.com") }],
        resources: texts(&["pods", "pods/status", "pods/log", "services", "configmaps", "secrets"]),
        ..PolicyRule::default()
    };
    (0..15).map(rule).collect()
}

fn binding(number: usize) -> RoleBinding {
    let subject = |kind: &str, name: String| Subject { kind: kind.to_owned(), name, ..Subject::default() };
    RoleBinding {
        namespace: if number.is_multiple_of(10) {
            "".into()
        } else {
            format!("namespace-{}", number % 500).into()
        },
        name: format!("binding-{number}").into(),
        role_ref: RoleRef { kind: "ClusterRole".to_owned(), name: "edit".to_owned() },
        subjects: vec![
            subject("User", format!("user-{number}")),
            subject("Group", format!("group-{}", number % 1000)),
        ],
    }
}

fn fill(index: &mut Index) {
    index.set_role("", "edit", Some(role()));
    (0..BINDINGS).for_each(|number| index.set_binding(binding(number)));
}

fn authorize(c: &mut Criterion) {
    let rbac = Rbac::default();
    rbac.change(fill);
    let user = |name: &str, groups: &[&str]| UserInfo {
        name: name.to_owned(),
        groups: texts(groups),
        ..UserInfo::default()
    };
    let groups = ["group-501", "group-none", "system:authenticated"];
    let jane = user("user-1", &groups);
    let nobody = user("nobody", &["a", "b", "system:authenticated"]);
    let attributes = |user, namespace| Attributes {
        version: "v1",
        resource: "configmaps",
        namespace,
        name: "settings",
        ..Attributes::of(user, "get")
    };
    for (name, user, allowed) in [("allowed", &jane, true), ("refused", &nobody, false)] {
        let attributes = attributes(user, "namespace-1");
        assert_eq!(rbac.decide(&attributes).is_allowed(), allowed);
        c.bench_function(&format!("{name} with {BINDINGS} bindings"), |b| {
            b.iter(|| rbac.decide(black_box(&attributes)));
        });
    }
    c.bench_function(&format!("a binding more to {BINDINGS}"), |b| {
        b.iter(|| rbac.change(|index| index.set_binding(binding(black_box(7)))));
    });
}

criterion_group!(benches, authorize);
criterion_main!(benches);
