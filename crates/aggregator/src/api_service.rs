//! API services: which server answers for a group and version
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).

use pintle_registry::{DefaultStrategy, Resource, Scope, Subresource, SubresourceKind, Verb};
use std::sync::Arc;

/// The declaration.
pub(crate) fn resource() -> Resource {
    let mut resource = Resource::new(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "apiservice",
        "APIService",
        Scope::Cluster,
        "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIService",
    );
    resource.categories = vec!["api-extensions".to_owned()];
    // The aggregator keeps its group in the path, unlike the built-in groups.
    resource.storage.path = "apiregistration.k8s.io/apiservices".to_owned();
    resource.subresources = vec![Subresource {
        name: "status".to_owned(),
        kind: SubresourceKind::Part {
            strategy: Arc::new(DefaultStrategy),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
        },
    }];
    resource
}
