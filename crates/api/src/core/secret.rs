//! `Secret`: confidential data.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Secret", "secrets")
        .prints(table::columns, table::cells)
        .ruled(strategy::SecretStrategy)
        .selectable([SelectableField::new("type")])
}
