//! Configurations of validating webhooks.

mod table;

use super::defaults::set_webhook_defaults;
use super::group::GROUP;
use super::policy_validation::warnings_for_name;
use super::webhook_validation::{validate_configuration, validate_configuration_update};
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .categories(["api-extensions"])
        .in_force_when_answered()
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_webhook_defaults)
    .generation(Generation::CountedWithEmpty("webhooks"))
    .needs_resource_version()
    .checked(validate_configuration, validate_configuration_update)
    .warned(warnings_for_name);
