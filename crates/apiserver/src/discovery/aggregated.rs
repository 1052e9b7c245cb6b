//! The aggregated discovery document.

use super::{
    group::{Version, subresource_facts, verb_names},
    merge::{Content, MergedGroup, MergedVersion},
};
use pintle_machinery::{Value, json};

/// The `APIGroupDiscoveryList` of the core group, or of all other groups.
pub(super) fn document(groups: &[MergedGroup], core: bool) -> Value {
    let groups = groups.iter().filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|group| {
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            let version = |version: &MergedVersion| match &version.content {
                Content::Local(version) => version_document(version),
                Content::Remote(document) => Value::clone(document),
            };
            let versions: Vec<Value> = group.versions.iter().map(version).collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    list(items)
}

/// The `APIGroupDiscoveryList` of these groups.
pub(super) fn list(groups: Vec<Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    })
}

fn version_document(version: &Version) -> Value {
    let mut resources = Vec::new();
    for listed in &version.resources {
        let resource = &listed.resource;
        let is_full = resource.model.full_response_kind;
        let own_kind = match is_full {
            true => {
                let id = &resource.resource;
                json!({"group": id.group, "version": id.version, "kind": resource.kind})
            }
            false => json!({"group": "", "version": "", "kind": resource.kind}),
        };
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|subresource| {
                let (kind, verbs) = subresource_facts(resource, &subresource.kind);
                let is_own = kind.get("group").is_some_and(|group| group == "") && is_full;
                let kind = if is_own { own_kind.clone() } else { kind };
                json!({
                    "subresource": subresource.name,
                    "responseKind": kind,
                    "verbs": verb_names(&verbs),
                })
            })
            .collect();
        let entry = json!({
            "resource": resource.resource.resource,
            "responseKind": own_kind,
            "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
            "singularResource": resource.singular,
            "verbs": listed.verbs(),
            "shortNames": resource.short_names,
            "categories": resource.categories,
            "subresources": subresources,
        });
        resources.push(entry);
    }
    json!({"version": version.name, "resources": resources, "freshness": "Current"})
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            group::{Group, Listed, add},
            merge::merge,
        },
        *,
    };
    use pintle_registry::{
        DefaultStrategy, ObjectModel, Resource, Scope, Subresource, SubresourceKind, Verb,
    };
    use std::sync::Arc;

    /// The entry of a resource with a status and the verbs get and create.
    fn entry(model: ObjectModel, is_terminating: bool) -> Value {
        let mut resource = Resource::new("g", "v1", "things", "thing", "Thing", Scope::Cluster, "");
        resource.model = model;
        resource.verbs = vec![Verb::Get, Verb::Create];
        resource.subresources = vec![Subresource {
            name: "status".to_owned(),
            kind: SubresourceKind::Object {
                strategy: Arc::new(DefaultStrategy),
                verbs: vec![Verb::Get],
                has_table: true,
            },
        }];
        let mut groups = Vec::new();
        add(&mut groups, Listed { resource: Arc::new(resource), is_terminating, serves_storage: true });
        let groups: Vec<Arc<Group>> = groups.into_iter().map(Arc::new).collect();
        document(&merge(&groups, &[], None, |_, _| (1, 1)), false)["items"][0]["versions"][0]["resources"][0]
            .take()
    }

    #[test]
    fn the_object_model_decides_whether_the_own_kind_is_named_in_full() {
        let relative = json!({"group": "", "version": "", "kind": "Thing"});
        let full = json!({"group": "g", "version": "v1", "kind": "Thing"});
        for (full_response_kind, expected) in [(false, relative), (true, full)] {
            let entry = entry(ObjectModel { full_response_kind, ..ObjectModel::BUILT_IN }, false);
            assert_eq!(entry["responseKind"], expected);
            assert_eq!(entry["subresources"][0]["responseKind"], expected);
        }
    }

    #[test]
    fn verbs_have_the_declared_order_and_end_with_the_definition() {
        assert_eq!(entry(ObjectModel::BUILT_IN, false)["verbs"], json!(["get", "create"]));
        assert_eq!(entry(ObjectModel::BUILT_IN, true)["verbs"], json!(["get"]));
    }
}
