//! Limits of what a namespace may use in all.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ResourceQuota", "resourcequotas").short_names(["quota"]).status(DefaultStrategy)
}
