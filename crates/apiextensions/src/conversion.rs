//! Converts objects between the versions of a custom resource
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>).

mod answer;
mod metadata;
mod metrics;
mod review;
mod webhook;

pub(crate) use metrics::ConversionMetrics;
pub(crate) use webhook::{WebhookConverter, Webhooks};

use crate::definition_view::Definition;
use pintle_registry::{Converter, SameContent};
use std::sync::Arc;

/// The converter between the versions of a definition.
pub(crate) fn converter(definition: &Definition, webhooks: &Webhooks) -> Arc<dyn Converter> {
    match &definition.spec.conversion {
        Some(conversion) if conversion.strategy == "Webhook" => {
            let webhook = conversion.webhook.clone().unwrap_or_default();
            Arc::new(WebhookConverter::new(&definition.metadata.name, &webhook, webhooks))
        }
        _ => Arc::new(SameContent),
    }
}
