//! Webhooks that judge objects.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .categories(["api-extensions"])
}
