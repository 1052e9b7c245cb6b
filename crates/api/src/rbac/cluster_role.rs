//! Permissions, for the cluster or any namespace.

mod validation;

use super::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ClusterRole", "clusterroles").ruled(RULES)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .creates_on_update()
    .takes_any_name()
    .checked(validation::validate, validation::validate_update);
