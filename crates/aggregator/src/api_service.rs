//! API services: which server answers for a group and version
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).

use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, meta};
use pintle_registry::{
    Cell, Column, RequestContext, Resource, Scope, StorageEncoding, Strategy, Subresource, SubresourceKind,
    TableConvertor, Verb,
};
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
    // As kube-apiserver's aggregator, it knows nothing but JSON.
    resource.storage.encoding = StorageEncoding::Json;
    resource.table = Arc::new(ApiServiceTable);
    resource.strategy = Arc::new(ApiServiceStrategy);
    resource.subresources = vec![Subresource {
        name: "status".to_owned(),
        kind: SubresourceKind::Part {
            strategy: Arc::new(StatusStrategy),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
        },
    }];
    resource
}

struct ApiServiceStrategy;

impl Strategy for ApiServiceStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }
}

/// Of `status`.
struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "metadata"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        for part in [
            "spec",
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers",
            "metadata.ownerReferences",
        ] {
            keep(object, old, part);
        }
    }
}

/// Takes a part of the object as it is stored.
fn keep(object: &mut Value, old: &Value, part: &str) {
    match old.at(part) {
        Some(value) => object.set(part, value.clone()),
        None => drop(object.remove_at(part)),
    }
}

/// Who serves the version, and whether they do.
struct ApiServiceTable;

impl TableConvertor for ApiServiceTable {
    fn columns(&self) -> Vec<Column> {
        vec![
            Column::name(),
            Column::string("Service", 0, "The service that serves the version; Local is this server."),
            Column::string("Available", 0, "Whether it can be reached."),
            Column::age(),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell> {
        let service = match object.at("spec.service") {
            Some(service) => format!("{}/{}", service.str_at("namespace"), service.str_at("name")),
            None => "Local".to_owned(),
        };
        let age = meta::translate_timestamp_since(object.str_at("metadata.creationTimestamp"), now);
        vec![object.str_at("metadata.name").into(), service.into(), availability(object).into(), age.into()]
    }
}

/// The state of the condition, and the reason unless all is well.
fn availability(object: &Value) -> String {
    let mut conditions = object.items_at("status.conditions").iter();
    match conditions.find(|condition| condition.str_at("type") == "Available") {
        None => "Unknown".to_owned(),
        Some(condition) => match (condition.str_at("status"), condition.str_at("reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn availability_shows_the_reason_of_trouble() {
        let check = |condition: Value, expected: &str| {
            assert_eq!(availability(&json!({"status": {"conditions": [condition]}})), expected);
        };
        check(json!({"type": "Other", "status": "True"}), "Unknown");
        check(json!({"type": "Available", "status": "True", "reason": "Local"}), "True");
        check(json!({"type": "Available", "status": "False", "reason": "Missing"}), "False (Missing)");
        check(json!({"type": "Available", "status": "False"}), "False");
    }
}
