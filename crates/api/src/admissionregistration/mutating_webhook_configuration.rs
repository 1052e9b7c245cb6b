//! Configurations of mutating webhooks.

mod table;

use super::defaults::set_mutating_webhook_defaults;
use super::group::GROUP;
use super::reserved_names::with_reserved_names;
use super::webhook_validation::{validate_configuration, validate_configuration_update};
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .prints(table::columns, table::cells)
        .ruled(STRATEGY)
        .categories(["api-extensions"])
        .in_force_when_answered()
}

/// The strategy of configurations.
pub(super) const STRATEGY: PlainStrategy = with_reserved_names(
    PlainStrategy::NEW
        .defaults(set_mutating_webhook_defaults)
        .generation(Generation::CountedWithEmpty("webhooks"))
        .needs_resource_version()
        .checked(validate_configuration, validate_configuration_update),
);
