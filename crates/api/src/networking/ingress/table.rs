//! The table columns of ingresses.

use crate::printing::{NONE, age, column, name, text_or};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};
use std::collections::BTreeSet;

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Class", "Who serves it."),
        column("Hosts", "The names it answers to."),
        column("Address", "Where it can be reached."),
        column("Ports", "The ports it listens on."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(ingress: &Value, now: Timestamp) -> Vec<Cell> {
    let has_tls = !ingress.items_at("spec.tls").is_empty();
    vec![
        name(ingress),
        text_or(ingress, "spec.ingressClassName", NONE),
        hosts(ingress.items_at("spec.rules")).into(),
        address(ingress).into(),
        if has_tls { "80, 443" } else { "80" }.into(),
        age(ingress, now),
    ]
}

/// The first three hosts; the number of further ones counts rules, with or without a host.
fn hosts(rules: &[Value]) -> String {
    let named: Vec<(usize, &str)> = rules
        .iter()
        .enumerate()
        .map(|(index, rule)| (index, rule.str_at("host")))
        .filter(|(_, host)| !host.is_empty())
        .take(3)
        .collect();
    let shown = named.iter().map(|(_, host)| *host).collect::<Vec<_>>().join(",");
    match named.get(2) {
        _ if named.is_empty() => "*".to_owned(),
        Some((third, _)) if third + 1 < rules.len() => format!("{shown} + {} more...", rules.len() - 3),
        _ => shown,
    }
}

/// The addresses of the load balancer, sorted.
fn address(ingress: &Value) -> String {
    let points = ingress.items_at("status.loadBalancer.ingress").iter();
    let addresses: BTreeSet<&str> = points
        .map(|point| match point.str_at("ip") {
            "" => point.str_at("hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}
