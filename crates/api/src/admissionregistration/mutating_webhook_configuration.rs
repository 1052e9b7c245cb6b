//! Webhooks that change objects.

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .prints(columns, cells)
        .categories(["api-extensions"])
}

fn columns() -> Vec<Column> {
    vec![Column::name(), integers("Webhooks", "How many webhooks it has."), Column::age()]
}

fn cells(configuration: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(configuration), count(configuration, "webhooks"), age(configuration, now)]
}
