//! Storage that claims are bound to.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("PersistentVolume", "persistentvolumes").short_names(["pv"]).status(DefaultStrategy)
}
