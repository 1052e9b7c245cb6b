//! Storage versions: the version in which each server stores a resource.

mod table;
mod validation;

use super::group::V1ALPHA1;
use crate::declare::Declare;
use crate::plain::{CheckedStatusStrategy, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1ALPHA1
        .cluster("StorageVersion", "storageversions")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .status(STATUS)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .takes_any_name()
    .with_status()
    .needs_resource_version()
    // The spec is empty.
    .checked(validation::validate, |_, _| Vec::new());

const STATUS: CheckedStatusStrategy = CheckedStatusStrategy {
    needs_resource_version: true,
    check: |object, _| validation::validate_status(object),
};
