//! Resource claims: requests for devices.

mod status;
mod status_permissions;
mod table;
mod validation;

use super::admin_access;
use super::claim_spec;
use super::group::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_machinery::ValueExt;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ResourceClaim", "resourceclaims")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .status_without_table(status::StatusStrategy)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(|claim| claim_spec::set_defaults(claim.at_mut("spec.devices")))
    .gated("spec", claim_spec::GATED)
    .with_status()
    .answers_deleted_object()
    .reviewed(admin_access::review_claim)
    .checked(validation::validate, validation::validate_update);
