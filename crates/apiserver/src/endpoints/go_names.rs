//! Names of Go types and packages, which some messages to clients contain.

use crate::base::negotiation::{Offers, UNSTRUCTURED};
use pintle_machinery::{GroupVersionKind, scheme::internal_package};
use pintle_registry::{ObjectForm, Resource};

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
