//! Names of Go types and packages, which some messages to clients contain.

use crate::base::negotiation::{Offers, UNSTRUCTURED};
use pintle_machinery::{
    GroupVersionKind,
    scheme::{internal_package, scheme_of},
};
use pintle_registry::{ObjectForm, Resource};
use pintle_schema::{Schema, SchemaRef};

/// The name of the Go type of a resource's objects or lists.
pub(super) fn go_type_of(resource: &Resource, offers: Offers) -> String {
    let package = internal_package(&resource.resource.group);
    match (resource.model.form, offers) {
        (_, Offers::Scale) => "autoscaling.Scale".to_owned(),
        (ObjectForm::Map, Offers::List) => "unstructured.UnstructuredList".to_owned(),
        (ObjectForm::Map, _) => UNSTRUCTURED.to_owned(),
        (ObjectForm::Struct, Offers::List) => format!("{package}.{}", resource.list_kind),
        (ObjectForm::Struct, _) => format!("{package}.{}", resource.kind),
    }
}

/// The name of the Go type of a kind.
pub(super) fn go_type_of_kind(kind: &GroupVersionKind) -> String {
    format!("{}.{}", internal_package(&kind.group), kind.kind)
}

/// The type of a kind that is in the scheme of the server that serves `group`.
pub(super) fn registered(kind: &GroupVersionKind, group: &str) -> Option<SchemaRef<'static>> {
    // Kinds without a group of their own, such as `Status`, are in every scheme, as `v1`.
    let is_in_scheme = match kind.group.as_str() {
        "meta.k8s.io" => false,
        "" if is_unversioned(&kind.kind) => true,
        own => scheme_of(own) == scheme_of(group),
    };
    Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind).filter(|_| is_in_scheme)
}

fn is_unversioned(kind: &str) -> bool {
    kind.ends_with("Options")
        || matches!(
            kind,
            "Status" | "WatchEvent" | "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList"
        )
}
