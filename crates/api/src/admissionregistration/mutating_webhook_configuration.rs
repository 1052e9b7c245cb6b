//! Webhooks that change objects.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .categories(["api-extensions"])
}
