//! Templates of pods.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("PodTemplate", "podtemplates")
}
