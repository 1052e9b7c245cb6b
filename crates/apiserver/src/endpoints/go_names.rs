//! Names of Go types and packages, which some messages to clients contain.

use crate::base::negotiation::{Offers, UNSTRUCTURED};
use pintle_machinery::{GroupVersionKind, scheme::internal_package};
use pintle_registry::{ObjectForm, Resource};

/// The name of the Go type of a resource's objects or lists.
pub(super) fn go_type_of(resource: &Resource, offers: Offers) -> String {
    let package = internal_package(&resource.resource.group);
    match (resource.model.form, offers) {
        // That of a custom resource is made in the version that is served.
        (ObjectForm::Map, Offers::Scale) => "v1.Scale".to_owned(),
        (ObjectForm::Struct, Offers::Scale) => "autoscaling.Scale".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::Scope;

    #[test]
    fn scales_have_the_version_in_which_they_are_made() {
        let mut resource =
            Resource::new("example.com", "v1", "widgets", "widget", "Widget", Scope::Namespaced, "");
        assert_eq!(go_type_of(&resource, Offers::Scale), "autoscaling.Scale");
        resource.model.form = ObjectForm::Map;
        assert_eq!(go_type_of(&resource, Offers::Scale), "v1.Scale");
    }
}
