//! Ways to run containers.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("RuntimeClass", "runtimeclasses")
}
