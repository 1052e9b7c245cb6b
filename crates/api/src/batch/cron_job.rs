//! Jobs by the clock.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("CronJob", "cronjobs").short_names(["cj"]).categories(["all"]).status(DefaultStrategy)
}
