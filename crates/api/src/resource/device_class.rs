//! Device classes.

mod table;
mod validation;

use super::group::GROUP;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.cluster("DeviceClass", "deviceclasses").prints(table::columns, table::cells).ruled(RULES)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .generation(Generation::Counted)
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);
