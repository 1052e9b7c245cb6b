//! Configurations of mutating webhooks.

use super::GROUP;
use super::defaults::set_mutating_webhook_defaults;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{age, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .prints(columns, cells)
        .ruled(RULES)
        .categories(["api-extensions"])
}

fn columns() -> Vec<Column> {
    vec![Column::name(), integers("Webhooks", "How many webhooks it has."), Column::age()]
}

fn cells(configuration: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(configuration), count(configuration, "webhooks"), age(configuration, now)]
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_mutating_webhook_defaults)
    .generation(Generation::Counted)
    .needs_resource_version();
