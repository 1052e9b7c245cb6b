//! Device taint rules: taints that an administrator sets on devices.

mod strategy;
mod table;
mod validation;

use super::group::{V1ALPHA3, V1BETA2};
use crate::declare::{Declare, same_shape};
use crate::plain::CheckedStatusStrategy;
use pintle_registry::Resource;

/// The declaration in the alpha version, which is the storage version.
pub fn resource() -> Resource {
    declared().deprecated(36, 39, None)
}

/// The declaration in the beta version.
pub fn resource_v1beta2() -> Resource {
    declared().in_version(V1BETA2, same_shape!("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"))
}

fn declared() -> Resource {
    V1ALPHA3
        .cluster("DeviceTaintRule", "devicetaintrules")
        .prints(table::columns, table::cells)
        .ruled(strategy::DeviceTaintRuleStrategy)
        .status_without_table(STATUS)
}

const STATUS: CheckedStatusStrategy =
    CheckedStatusStrategy { needs_resource_version: false, check: validation::validate_status_update };
