//! Confidential data.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("Secret", "secrets").selectable([SelectableField::new("type")])
}
