//! The legacy discovery documents: one of all groups, one per group, and one per version.

use super::{
    Discovery,
    group::{Group, storage_version_hash, subresource_facts, verb_names},
};
use pintle_machinery::{Value, ValueExt};
use serde_json::json;

impl Discovery {
    pub(super) fn api_versions(&self) -> Value {
        let core = self.find("");
        let versions: Vec<&str> = core
            .iter()
            .flat_map(|group| group.versions.iter().map(|version| version.name.as_str()))
            .collect();
        json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.server_address}],
        })
    }

    pub(super) fn group_list(&self) -> Value {
        let whole = self.whole();
        let groups = whole.groups.iter().filter(|group| !group.name.is_empty());
        let groups: Vec<Value> = groups
            .map(|group| {
                let mut document = group_document(group);
                document.remove_at("kind");
                document.remove_at("apiVersion");
                document
            })
            .collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    pub(super) fn group(&self, name: &str) -> Option<Value> {
        self.find(name).filter(|group| !group.name.is_empty()).map(|group| group_document(&group))
    }

    pub(super) fn resource_list(&self, group: &str, version: &str) -> Option<Value> {
        let found = self.find(group)?;
        let version = found.versions.iter().find(|own| own.name == version)?;
        let mut resources = Vec::new();
        for listed in &version.resources {
            let resource = &listed.resource;
            let mut entry = json!({
                "name": resource.resource.resource,
                "singularName": resource.singular,
                "namespaced": resource.is_namespaced(),
                "kind": resource.kind,
                "verbs": listed.verbs(),
                "shortNames": resource.short_names,
                "categories": resource.categories,
            });
            if let Some(hash) = storage_version_hash(resource) {
                entry.set("storageVersionHash", hash);
            }
            resources.push(entry);
            for subresource in &resource.subresources {
                let (kind, verbs) = subresource_facts(resource, &subresource.kind);
                resources.push(json!({
                    "name": format!("{}/{}", resource.resource.resource, subresource.name),
                    "singularName": "",
                    "namespaced": resource.is_namespaced(),
                    "group": kind.str_at("group"),
                    "version": kind.str_at("version"),
                    "kind": kind.str_at("kind"),
                    "verbs": verb_names(&verbs),
                }));
            }
        }
        let mut list = json!({
            "kind": "APIResourceList",
            "groupVersion": if group.is_empty() { version.name.clone() } else { format!("{group}/{}", version.name) },
            "resources": resources,
        });
        if !group.is_empty() {
            list.set("apiVersion", "v1");
        }
        Some(list)
    }
}

fn group_document(group: &Group) -> Value {
    let name = &group.name;
    let versions = group.versions.iter();
    let versions: Vec<Value> = versions
        .map(|version| json!({"groupVersion": format!("{name}/{}", version.name), "version": version.name}))
        .collect();
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions.first().cloned().unwrap_or_default(),
    })
}
