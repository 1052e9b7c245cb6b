//! Templates of claims to devices.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ResourceClaimTemplate", "resourceclaimtemplates")
}
