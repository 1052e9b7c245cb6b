//! The resource of custom resource definitions
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>).

use crate::definition::{DefinitionStrategy, StatusStrategy};
use pintle_registry::{Resource, Scope, Subresource, SubresourceKind, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub(crate) fn resource() -> Resource {
    let mut resource = Resource::new(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "customresourcedefinition",
        "CustomResourceDefinition",
        Scope::Cluster,
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinition",
    );
    resource.short_names = vec!["crd".to_owned(), "crds".to_owned()];
    resource.categories = vec!["api-extensions".to_owned()];
    // The API extensions server keeps its group in the path, unlike the built-in groups.
    resource.storage.path = "apiextensions.k8s.io/customresourcedefinitions".to_owned();
    crate::storage_version::apply(&mut resource);
    resource.strategy = Arc::new(DefinitionStrategy);
    resource.subresources = vec![Subresource {
        name: "status".to_owned(),
        kind: SubresourceKind::Object {
            strategy: Arc::new(StatusStrategy),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
            has_table: false,
        },
    }];
    resource
}
