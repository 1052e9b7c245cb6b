//! Templates of resource claims.

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
        .namespaced("ResourceClaimTemplate", "resourceclaimtemplates")
        .prints(table::columns, table::cells)
        .ruled(RULES)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(|template| claim_spec::set_defaults(template.at_mut("spec.spec.devices")))
    .gated("spec.spec", claim_spec::GATED)
    .answers_deleted_object()
    .reviewed(admin_access::review_template)
    .checked(validation::validate, validation::validate_update);
