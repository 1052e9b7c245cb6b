//! Names of Go types and packages, which some messages to clients contain.

use crate::{base::negotiation::Offers, registry::VersionedResource};

/// The name of the Go type of a resource's objects or lists.
pub(super) fn go_type_of(resource: &VersionedResource, offers: Offers) -> String {
    let is_custom = resource.schema.is_custom();
    let resource = &resource.resource;
    let package = internal_package(&resource.resource.group);
    match (is_custom, offers) {
        (true, Offers::List) => "unstructured.UnstructuredList".to_owned(),
        (true, _) => "unstructured.Unstructured".to_owned(),
        (false, Offers::List) => format!("{package}.{}", resource.list_kind),
        (false, _) => format!("{package}.{}", resource.kind),
    }
}

/// The package name of a group's internal types; part of one error message.
pub(super) fn internal_package(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    }
}
