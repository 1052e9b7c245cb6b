//! Everything in one document.

use super::{Discovery, Version, subresource_facts, verb_names};
use pintle_machinery::Value;
use serde_json::json;

impl Discovery {
    pub(super) fn aggregated_document(&self, core: bool) -> Value {
        let items: Vec<Value> = self
            .groups
            .iter()
            .filter(|group| group.name.is_empty() == core)
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
}

fn version_document(version: &Version) -> Value {
    let mut resources = Vec::new();
    for resource in &version.resources {
        let mut subresources: Vec<_> = resource.subresources.iter().collect();
        subresources.sort_by(|a, b| a.name.cmp(&b.name));
        let subresources: Vec<Value> = subresources
            .into_iter()
            .map(|subresource| {
                let (kind, verbs) = subresource_facts(resource, &subresource.kind);
                json!({
                    "subresource": subresource.name,
                    "responseKind": kind,
                    "verbs": verb_names(&verbs),
                })
            })
            .collect();
        let entry = json!({
            "resource": resource.resource.resource,
            "responseKind": {"group": "", "version": "", "kind": resource.kind},
            "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
            "singularResource": resource.singular,
            "verbs": verb_names(&resource.verbs),
            "shortNames": resource.short_names,
            "categories": resource.categories,
            "subresources": subresources,
        });
        resources.push(entry);
    }
    json!({"version": version.name, "resources": resources, "freshness": "Current"})
}
