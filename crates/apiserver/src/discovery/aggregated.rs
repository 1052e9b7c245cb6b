//! The aggregated discovery document.

use super::group::{Group, Version, subresource_facts, verb_names};
use pintle_machinery::Value;
use serde_json::json;
use std::sync::Arc;

/// The `APIGroupDiscoveryList` of the core group, or of all other groups.
pub(super) fn document(groups: &[Arc<Group>], core: bool) -> Value {
    let groups = groups.iter().filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|group| {
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            let versions: Vec<Value> = group.versions.iter().map(version_document).collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn version_document(version: &Version) -> Value {
    let mut resources = Vec::new();
    for listed in &version.resources {
        let resource = &listed.resource;
        let own_kind = match listed.is_custom {
            true => {
                let id = &resource.resource;
                json!({"group": id.group, "version": id.version, "kind": resource.kind})
            }
            false => json!({"group": "", "version": "", "kind": resource.kind}),
        };
        let mut subresources: Vec<_> = resource.subresources.iter().collect();
        if !listed.is_custom {
            subresources.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let subresources: Vec<Value> = subresources
            .into_iter()
            .map(|subresource| {
                let (kind, verbs) = subresource_facts(resource, &subresource.kind);
                let is_own = kind.get("group").is_some_and(|group| group == "") && listed.is_custom;
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
