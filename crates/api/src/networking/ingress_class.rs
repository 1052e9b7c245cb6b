//! Which controller serves an ingress.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("IngressClass", "ingressclasses")
}
