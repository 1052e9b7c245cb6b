//! Kinds of performance that volumes can be switched between.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("VolumeAttributesClass", "volumeattributesclasses").short_names(["vac"])
}
