//! The drivers of a node.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("CSINode", "csinodes")
}
