//! Endpoints: all addresses behind a service in one object. Endpoint slices supersede them.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource = GROUP
        .namespaced("Endpoints", "endpoints")
        .short_names(["ep"])
        .prints(table::columns, table::cells)
        .ruled(strategy::EndpointsStrategy)
        .stored_at("services/endpoints");
    let deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    resource.deprecation = Some(deprecation.to_owned());
    resource
}
