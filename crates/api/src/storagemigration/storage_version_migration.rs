//! Storage version migrations: requests to store all objects of a resource again. A controller outside of the API server
//! carries them out.

mod table;
mod validation;

use super::group::V1BETA1;
use crate::declare::Declare;
use crate::plain::{CheckedStatusStrategy, PlainStrategy};
use pintle_feature_gates::Gate;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1BETA1
        .cluster("StorageVersionMigration", "storageversionmigrations")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .status(CheckedStatusStrategy {
            needs_resource_version: true,
            check: validation::validate_status_update,
        })
        .behind(Gate::StorageVersionMigrator)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .with_status()
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update);
