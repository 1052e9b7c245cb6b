//! Device classes.

mod table;
mod validation;

use super::group::GROUP;
use crate::declare::Declare;
use crate::gated_fields::GatedFields;
use crate::plain::{Generation, PlainStrategy};
use pintle_feature_gates::Gate;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.cluster("DeviceClass", "deviceclasses").prints(table::columns, table::cells).ruled(RULES)
}

/// The field behind a gate.
const GATED: &[GatedFields] =
    &[GatedFields { gates: &[Gate::DRAExtendedResource], fields: &["extendedResourceName"] }];

const RULES: PlainStrategy = PlainStrategy::NEW
    .gated("spec", GATED)
    .generation(Generation::Counted)
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);
