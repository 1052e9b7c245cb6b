//! The legacy discovery documents: one of all groups, one per group, and one per version.

use super::{
    Discovery,
    api_services::RegisteredGroup,
    group::{Group, storage_version_hash, subresource_facts, verb_names},
};
use pintle_machinery::{Value, ValueExt, json};

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

    /// The list of registered groups. Without API services, it has the groups of this server.
    pub(super) fn group_list(&self) -> Value {
        let documents: Vec<Value> = match &self.api_services {
            None => self.whole().groups.iter().map(|group| group_document(group)).collect(),
            Some(source) => {
                let api_services = source.current();
                let first = self.find(api_services.first());
                let others = api_services.groups().iter().map(registered_document);
                first.map(|group| group_document(&group)).into_iter().chain(others).collect()
            }
        };
        let groups = documents.into_iter().filter(|document| !document.str_at("name").is_empty());
        let groups: Vec<Value> = groups
            .map(|mut document| {
                document.remove_at("kind");
                document.remove_at("apiVersion");
                document
            })
            .collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// The registered versions of a group. A group without API services has the versions that this server serves.
    pub(super) fn group(&self, name: &str) -> Option<Value> {
        if name.is_empty() {
            return None;
        }
        let registered = self.api_services.as_ref().map(|source| source.current());
        match registered.as_ref().and_then(|api_services| api_services.group(name)) {
            Some(group) => Some(registered_document(group)),
            None => self.find(name).map(|group| group_document(&group)),
        }
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
            if let Some(hash) = storage_version_hash(listed) {
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
    document(&group.name, group.versions.iter().map(|version| version.name.as_str()))
}

fn registered_document(group: &RegisteredGroup) -> Value {
    document(&group.name, group.versions.iter().map(String::as_str))
}

/// The `APIGroup` with these versions, the preferred one first.
fn document<'a>(name: &str, versions: impl Iterator<Item = &'a str>) -> Value {
    let versions: Vec<Value> = versions
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions.first().cloned().unwrap_or_default(),
    })
}
