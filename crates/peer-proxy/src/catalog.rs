//! The resources that the other servers of the cluster serve.

use pintle_aggregator::{DiscoveredGroup, aggregated_groups};
use pintle_apiserver::discovery::PeerGroups;
use pintle_machinery::{GroupVersion, GroupVersionResource, Value, ValueExt, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// The groups that one server serves, as its discovery documents list them. No name occurs twice in a list.
#[derive(Debug, Default)]
pub(crate) struct PeerDocument(Vec<Arc<Value>>);

impl PeerDocument {
    /// Reads the aggregated discovery documents of a server. Of names that occur twice, the first one counts.
    ///
    /// # Errors
    /// The reason why a document is refused.
    pub(crate) fn read(documents: &[impl AsRef<[u8]>]) -> Result<PeerDocument, String> {
        let mut groups = Vec::new();
        let mut names = HashSet::new();
        for document in documents {
            for DiscoveredGroup { name, versions } in aggregated_groups(document.as_ref())? {
                if !names.insert(name.clone()) {
                    continue;
                }
                let mut versions = unique(versions, "version");
                for version in &mut versions {
                    let resources = unique(version.items_at("resources").to_vec(), "resource");
                    version.set("resources", resources);
                }
                groups.push(Arc::new(group(&name, versions)));
            }
        }
        Ok(PeerDocument(groups))
    }

    /// The groups without those of excluded groups and versions.
    fn without(&self, excluded: &HashSet<GroupVersion>) -> Vec<Arc<Value>> {
        let remaining = |own: &Arc<Value>| {
            let name = own.str_at("metadata.name");
            let is_excluded =
                |version: &Value| excluded.contains(&GroupVersion::new(name, version.str_at("version")));
            let versions = own.items_at("versions");
            if !versions.iter().any(is_excluded) {
                return Some(own.clone());
            }
            let versions: Vec<Value> =
                versions.iter().filter(|version| !is_excluded(version)).cloned().collect();
            (!versions.is_empty()).then(|| Arc::new(group(name, versions)))
        };
        self.0.iter().filter_map(remaining).collect()
    }
}

fn group(name: &str, versions: Vec<Value>) -> Value {
    json!({"metadata": {"name": name}, "versions": versions})
}

/// The items with a name, the first one of each.
fn unique(items: Vec<Value>, key: &str) -> Vec<Value> {
    let mut names = HashSet::new();
    let is_first = |item: &Value| {
        let name = item.str_at(key);
        !name.is_empty() && names.insert(name.to_owned())
    };
    let mut is_first = is_first;
    items.into_iter().filter(|item| is_first(item)).collect()
}

/// The resources of all other servers, without the excluded ones.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    servers: HashMap<GroupVersionResource, Vec<Arc<str>>>,
    groups: Arc<PeerGroups>,
}

impl Catalog {
    /// The resources in the documents of these servers; `own` is the identity of this server.
    pub(crate) fn new(
        own: &str,
        documents: &BTreeMap<String, Arc<PeerDocument>>,
        excluded: &HashSet<GroupVersion>,
    ) -> Catalog {
        let mut servers: HashMap<GroupVersionResource, Vec<Arc<str>>> = HashMap::new();
        let mut peers = BTreeMap::new();
        for (id, document) in documents {
            let groups = document.without(excluded);
            let id: Arc<str> = id.as_str().into();
            for group in &groups {
                for version in group.items_at("versions") {
                    for resource in version.items_at("resources") {
                        let resource = GroupVersionResource::new(
                            group.str_at("metadata.name"),
                            version.str_at("version"),
                            resource.str_at("resource"),
                        );
                        servers.entry(resource).or_default().push(id.clone());
                    }
                }
            }
            // Discovery lists the core group, which has a path of its own, for each server alone.
            let named = groups.into_iter().filter(|group| !group.str_at("metadata.name").is_empty());
            peers.insert(id.to_string(), named.collect());
        }
        Catalog { servers, groups: Arc::new(PeerGroups { own: own.to_owned(), peers }) }
    }

    /// The servers that serve a resource.
    pub(crate) fn servers_of(&self, resource: &GroupVersionResource) -> &[Arc<str>] {
        self.servers.get(resource).map(Vec::as_slice).unwrap_or_default()
    }

    /// The groups of the servers, for discovery.
    pub(crate) fn groups(&self) -> &Arc<PeerGroups> {
        &self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document of groups in the notation `group/version/resource`.
    fn document(names: &[&str]) -> String {
        let item = |name: &&str| {
            let [group, version, resource] = name.split('/').collect::<Vec<_>>().try_into().unwrap();
            json!({"metadata": {"name": group}, "versions": [
                {"version": version, "freshness": "Current", "resources": [
                    {"resource": resource, "verbs": ["get"]}, {"resource": resource, "verbs": ["list"]},
                ]},
                {"version": version, "resources": [{"resource": "second"}]},
                {"version": "", "resources": []},
            ]})
        };
        let items: Vec<Value> = names.iter().map(item).collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
            .to_string()
    }

    fn catalog(excluded: &[(&str, &str)]) -> Catalog {
        let one = PeerDocument::read(&[document(&["/v1/pods"]), document(&["a/v1/x", "b/v1/y"])]).unwrap();
        let two = PeerDocument::read(&[document(&["/v1/pods"]), document(&["b/v1/y", "b/v2/z"])]).unwrap();
        let documents = [("one", one), ("two", two)].map(|(id, own)| (id.to_owned(), Arc::new(own)));
        let excluded = excluded.iter().map(|(group, version)| GroupVersion::new(*group, *version)).collect();
        Catalog::new("own", &documents.into(), &excluded)
    }

    #[test]
    fn resources_are_found_at_the_servers_that_list_them() {
        let check = |excluded: &[(&str, &str)], resource: (&str, &str, &str), expected: &str| {
            let catalog = catalog(excluded);
            let resource = GroupVersionResource::new(resource.0, resource.1, resource.2);
            assert_eq!(catalog.servers_of(&resource).join(" "), expected, "{resource:?}");
        };
        check(&[], ("", "v1", "pods"), "one two");
        check(&[], ("a", "v1", "x"), "one");
        check(&[], ("b", "v1", "y"), "one two");
        // A group, version or resource that occurs twice is the first one.
        check(&[], ("b", "v2", "z"), "");
        check(&[], ("a", "v1", "second"), "");
        check(&[("b", "v2")], ("b", "v1", "y"), "one two");
        check(&[("b", "v1")], ("b", "v1", "y"), "");
        check(&[("b", "v1")], ("a", "v1", "x"), "one");
    }

    #[test]
    fn discovery_gets_the_groups_without_the_excluded_and_the_core_group() {
        let check = |excluded: &[(&str, &str)], expected: &str| {
            let groups = catalog(excluded).groups().clone();
            let names = |groups: &Vec<Arc<Value>>| {
                groups
                    .iter()
                    .map(|group| group.str_at("metadata.name").to_owned())
                    .collect::<Vec<_>>()
                    .join(",")
            };
            let servers = groups.peers.iter().map(|(id, groups)| format!("{id}:{}", names(groups)));
            assert_eq!(servers.collect::<Vec<_>>().join(" "), expected);
        };
        check(&[], "one:a,b two:b");
        check(&[("b", "v1")], "one:a two:");
        let catalog = catalog(&[]);
        let first = &catalog.groups().peers["one"][0];
        assert_eq!(
            **first,
            json!({"metadata": {"name": "a"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "x", "verbs": ["get"], "responseKind": {"group": "", "version": "", "kind": ""}},
            ]}]})
        );
    }

    #[test]
    fn documents_that_are_none_are_refused() {
        for text in ["", "junk", "[]", r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#] {
            assert!(PeerDocument::read(&[text]).is_err(), "{text}");
        }
    }
}
