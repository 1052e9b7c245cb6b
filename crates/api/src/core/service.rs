//! Services.

use super::GROUP;
use crate::declare::{Declare, PROXY_VERBS};
use pintle_registry::{DefaultStrategy, Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Service", "services")
        .short_names(["svc"])
        .categories(["all"])
        .connect("proxy", "ServiceProxyOptions", PROXY_VERBS)
        .status(DefaultStrategy)
        .selectable([SelectableField::new("spec.clusterIP"), SelectableField::new("spec.type")])
        .stored_at("services/specs")
}
