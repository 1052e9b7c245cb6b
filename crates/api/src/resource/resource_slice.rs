//! The devices of a driver, some at a time.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ResourceSlice", "resourceslices").selectable([
        SelectableField::new("spec.nodeName").with_trigger(),
        SelectableField::new("spec.driver"),
    ])
}
