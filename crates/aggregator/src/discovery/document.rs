//! Reads the discovery documents of other servers: the aggregated form, and the legacy form of one version.
//!
//! Both become the `APIVersionDiscovery` of aggregated discovery. A document is decoded by its schema: fields that the schema
//! does not have are dropped, and a document with a value of a wrong type is refused as a whole. Documents of too many
//! resources are refused, too.

use pintle_go_forms::quote;
use pintle_machinery::{GroupVersion, Value, ValueExt, codec::json, json};
use pintle_schema::Schema;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The `APIVersionDiscovery` of each group and version in a document.
pub type DiscoveredVersions = BTreeMap<GroupVersion, Arc<Value>>;

/// The maximum number of resources and subresources of a version.
const MOST: usize = 10_000;

const AGGREGATED: &str = "k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList";
const RESOURCE_LIST: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.APIResourceList";
const KIND: &str = "APIGroupDiscoveryList";
const API_GROUP: &str = "apidiscovery.k8s.io";

/// Whether a response has the media type of an aggregated document
/// (<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>).
pub(super) fn is_aggregated(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    if !parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json")) {
        return false;
    }
    let parameters: HashMap<String, &str> = parts
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim_matches('"')))
        .collect();
    let is = |name: &str, values: &[&str]| parameters.get(name).is_some_and(|value| values.contains(value));
    is("g", &[API_GROUP]) && is("v", &["v2", "v2beta1"]) && is("as", &[KIND])
}

/// A group of an aggregated document.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredGroup {
    /// The name, "" for the core group.
    pub name: String,
    /// The `APIVersionDiscovery` of each version, in the order of the document.
    pub versions: Vec<Value>,
}

/// Reads an aggregated document (`APIGroupDiscoveryList` of `v2` or `v2beta1`, which have the same fields) into versions,
/// without their freshness. Of groups and versions that occur twice, the last one counts.
///
/// # Errors
/// The reason why the document is refused.
pub fn aggregated(bytes: &[u8]) -> Result<DiscoveredVersions, String> {
    let mut versions = DiscoveredVersions::new();
    for group in aggregated_groups(bytes)? {
        for mut version in group.versions {
            let name = GroupVersion::new(group.name.as_str(), version.str_at("version"));
            version.remove_at("freshness");
            versions.insert(name, Arc::new(version));
        }
    }
    Ok(versions)
}

/// Reads an aggregated document as it is: groups and versions may occur twice.
///
/// # Errors
/// The reason why the document is refused.
pub fn aggregated_groups(bytes: &[u8]) -> Result<Vec<DiscoveredGroup>, String> {
    let api_versions = ["apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1"];
    let mut document = decode(bytes, AGGREGATED, KIND, &api_versions)?;
    let mut groups = Vec::new();
    for mut group in take_items(&mut document, "items") {
        let name = group.str_at("metadata.name").to_owned();
        let mut versions = take_items(&mut group, "versions");
        for version in &mut versions {
            let mut count = 0;
            let mut resources = take_items(version, "resources");
            for resource in &mut resources {
                let mut subresources = take_items(resource, "subresources");
                count += 1 + subresources.len();
                name_kind(resource);
                subresources.iter_mut().for_each(name_kind);
                put_items(resource, "subresources", subresources);
            }
            if count > MOST {
                let group_version = GroupVersion::new(name.as_str(), version.str_at("version"));
                return Err(format!("{group_version} has more than {MOST} resources"));
            }
            put_items(version, "resources", resources);
        }
        groups.push(DiscoveredGroup { name, versions });
    }
    Ok(groups)
}

/// Converts the legacy document of one version (`APIResourceList`).
///
/// # Errors
/// The reason why the document is refused.
pub fn legacy(bytes: &[u8], version: &str) -> Result<Arc<Value>, String> {
    let mut document = decode(bytes, RESOURCE_LIST, "APIResourceList", &["v1"])?;
    let listed = take_items(&mut document, "resources");
    if listed.len() > MOST {
        return Err(format!("the list has more than {MOST} resources"));
    }
    let mut resources: Vec<Parent> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let (subresources, parents): (Vec<&Value>, Vec<&Value>) =
        listed.iter().partition(|resource| resource.str_at("name").contains('/'));
    for parent in parents {
        by_name.insert(parent.str_at("name").to_owned(), resources.len());
        resources.push(Parent::of(parent));
    }
    for subresource in subresources {
        let Some((parent, name)) = subresource.str_at("name").split_once('/') else { continue };
        let at = *by_name.entry(parent.to_owned()).or_insert_with(|| {
            resources.push(Parent::unlisted(parent, subresource));
            resources.len() - 1
        });
        let Some(resource) = resources.get_mut(at) else { continue };
        let own = scope(subresource);
        let of_parent = resource.document.str_at("scope");
        if own != of_parent {
            let message = format!(
                "Error: Parent {parent} (scope: {of_parent}) and subresource {name} (scope: {own}) scope do not match"
            );
            return Err(message);
        }
        let kind = match subresource.str_at("kind") {
            "" => no_kind(),
            _ => response_kind(subresource),
        };
        let verbs = subresource.field("verbs").cloned().unwrap_or_else(|| json!([]));
        resource.subresources.push(json!({"subresource": name, "responseKind": kind, "verbs": verbs}));
    }
    let resources = resources
        .into_iter()
        .map(|mut parent| {
            put_items(&mut parent.document, "subresources", parent.subresources);
            parent.document
        })
        .collect();
    Ok(Arc::new(version_document(version, resources)))
}

/// The entry of a version whose resources are unknown.
pub(super) fn without_resources(version: &str) -> Value {
    version_document(version, Vec::new())
}

/// A resource of a legacy document, with its subresources.
struct Parent {
    document: Value,
    subresources: Vec<Value>,
}

impl Parent {
    fn of(resource: &Value) -> Parent {
        let mut document = json!({
            "resource": resource.str_at("name"),
            "scope": scope(resource),
            "responseKind": response_kind(resource),
            "verbs": resource.field("verbs").cloned().unwrap_or_else(|| json!([])),
            "singularResource": resource.str_at("singularName"),
        });
        for name in ["shortNames", "categories"] {
            put_items(&mut document, name, resource.items_at(name).to_vec());
        }
        Parent { document, subresources: Vec::new() }
    }

    /// The parent of a subresource that is not in the list itself.
    fn unlisted(name: &str, subresource: &Value) -> Parent {
        let document = json!({
            "resource": name,
            "scope": scope(subresource),
            "responseKind": no_kind(),
            "singularResource": "",
            "verbs": [],
        });
        Parent { document, subresources: Vec::new() }
    }
}

/// Decodes a document by its schema, and checks the kind and version that it names.
fn decode(bytes: &[u8], type_name: &str, kind: &str, api_versions: &[&str]) -> Result<Value, String> {
    let schema = Schema::builtin().by_type_name(type_name).ok_or("no schema for discovery")?;
    let decoded = json::decode_body(bytes, schema).map_err(|error| error.to_string())?;
    let document = decoded.value;
    let (own, api_version) = (document.str_at("kind"), document.str_at("apiVersion"));
    let is_right =
        (own.is_empty() || own == kind) && (api_version.is_empty() || api_versions.contains(&api_version));
    match is_right && document.is_object() {
        true => Ok(document),
        false => Err(format!("the document is of kind {} in version {}", quote(own), quote(api_version))),
    }
}

fn version_document(version: &str, resources: Vec<Value>) -> Value {
    let mut document = json!({"version": version});
    put_items(&mut document, "resources", resources);
    document
}

/// Adds the empty kind to a resource without one: some clients fail without it.
fn name_kind(resource: &mut Value) {
    if resource.field("responseKind").is_none_or(Value::is_null) {
        resource.set("responseKind", no_kind());
    }
}

fn no_kind() -> Value {
    json!({"group": "", "version": "", "kind": ""})
}

fn response_kind(resource: &Value) -> Value {
    let text = |name| resource.str_at(name);
    json!({"group": text("group"), "version": text("version"), "kind": text("kind")})
}

fn scope(resource: &Value) -> &'static str {
    match resource.bool_at("namespaced") {
        true => "Namespaced",
        false => "Cluster",
    }
}

fn take_items(object: &mut Value, name: &str) -> Vec<Value> {
    match object.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn put_items(object: &mut Value, name: &str, items: Vec<Value>) {
    match items.is_empty() {
        true => drop(object.remove_at(name)),
        false => object.set(name, items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_names_group_version_and_kind() {
        let rows = [
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", true),
            ("application/json; as=APIGroupDiscoveryList; V=v2beta1; g=apidiscovery.k8s.io", true),
            ("application/json;g=\"apidiscovery.k8s.io\";v=v2;as=APIGroupDiscoveryList", true),
            ("application/json", false),
            ("", false),
            ("application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", false),
            ("application/json;g=apidiscovery.k8s.io;v=v1;as=APIGroupDiscoveryList", false),
            ("application/json;g=apps;v=v2;as=APIGroupDiscoveryList", false),
            ("application/json;g=apidiscovery.k8s.io;v=v2", false),
        ];
        for (content_type, expected) in rows {
            assert_eq!(is_aggregated(content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn an_aggregated_document_is_split_into_versions() {
        let document = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2beta1", "metadata": {},
            "items": [
                {"metadata": {"name": "a", "creationTimestamp": null}, "versions": [
                    {"version": "v1", "freshness": "Stale", "unknown": 1, "resources": [
                        {"resource": "things", "scope": "Namespaced", "verbs": ["get"], "shortNames": ["th"],
                            "responseKind": {"group": "", "version": "", "kind": "Thing"},
                            "subresources": [{"subresource": "status", "verbs": ["get"]}]},
                        {"resource": "bare", "scope": "Cluster"},
                    ]},
                    {"version": "v7", "resources": []},
                ]},
                {"metadata": {"name": "other"}, "versions": [{"version": "v1"}]},
                {"metadata": {"name": "a"}, "versions": [{"version": "v2"}]},
            ],
        });
        let versions = aggregated(document.to_string().as_bytes()).unwrap();
        let names: Vec<String> = versions.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["a/v1", "a/v2", "a/v7", "other/v1"]);
        let no_kind = json!({"group": "", "version": "", "kind": ""});
        let first = &versions[&GroupVersion::new("a", "v1")];
        assert_eq!(first.str_at("version"), "v1");
        assert!(first.field("freshness").is_none(), "the aggregator knows it better");
        let resources = first.items_at("resources");
        assert_eq!(resources[0]["responseKind"]["kind"], "Thing");
        assert_eq!(resources[0]["subresources"][0]["responseKind"], no_kind);
        assert_eq!(resources[1]["responseKind"], no_kind);
    }

    #[test]
    fn a_legacy_document_is_converted() {
        let document = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "a/v1", "resources": [
                {"name": "things/status", "namespaced": true, "kind": "Thing", "singularName": "", "verbs": ["get", "update"]},
                {"name": "things", "namespaced": true, "kind": "Thing", "singularName": "thing", "verbs": ["list"],
                    "shortNames": ["th"], "categories": ["all"], "group": "g", "version": "v9"},
                {"name": "things/proxy/deep", "namespaced": true, "kind": "", "singularName": "", "verbs": []},
                {"name": "orphans/scale", "namespaced": false, "kind": "Scale", "singularName": "", "verbs": ["get"]},
            ],
        });
        let converted = legacy(document.to_string().as_bytes(), "v1").unwrap();
        let no_kind = json!({"group": "", "version": "", "kind": ""});
        assert_eq!(
            *converted,
            json!({"version": "v1", "resources": [
                {"resource": "things", "scope": "Namespaced", "singularResource": "thing", "verbs": ["list"],
                    "shortNames": ["th"], "categories": ["all"],
                    "responseKind": {"group": "g", "version": "v9", "kind": "Thing"},
                    "subresources": [
                        {"subresource": "status", "verbs": ["get", "update"],
                            "responseKind": {"group": "", "version": "", "kind": "Thing"}},
                        {"subresource": "proxy/deep", "verbs": [], "responseKind": no_kind},
                    ]},
                {"resource": "orphans", "scope": "Cluster", "singularResource": "", "verbs": [], "responseKind": no_kind,
                    "subresources": [{"subresource": "scale", "verbs": ["get"],
                        "responseKind": {"group": "", "version": "", "kind": "Scale"}}]},
            ]})
        );
    }

    #[test]
    fn documents_that_lie_are_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let within = |inner: &str| format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{inner}]}}"#);
        let many = vec![r#"{"resource":"a"}"#; MOST + 1].join(",");
        let many = within(&format!(
            r#"{{"metadata":{{"name":"a"}},"versions":[{{"version":"v1","resources":[{many}]}}]}}"#
        ));
        let rows = [
            String::new(),
            "[]".to_owned(),
            "<html></html>".to_owned(),
            r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#.to_owned(),
            r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v9","items":[]}"#.to_owned(),
            within("7"),
            within(r#"{"metadata":{"name":7}}"#),
            within(r#"{"versions":{"a":1}}"#),
            within(r#"{"versions":[{"version":"v1","resources":[{"verbs":"all"}]}]}"#),
            within(&deep),
            many,
            deep,
        ];
        for row in rows {
            let start: String = row.chars().take(120).collect();
            assert!(aggregated(row.as_bytes()).is_err(), "{start}");
        }
        let list = |inner: &str| format!(r#"{{"kind":"APIResourceList","resources":[{inner}]}}"#);
        let rows = [
            String::new(),
            r#"{"kind":"Status","apiVersion":"v1"}"#.to_owned(),
            list(r#"{"name":7}"#),
            list(r#"{"name":"a","namespaced":true},{"name":"a/b","namespaced":false}"#),
            list(&vec![r#"{"name":"a"}"#; MOST + 1].join(",")),
        ];
        for row in rows {
            let start: String = row.chars().take(120).collect();
            assert!(legacy(row.as_bytes(), "v1").is_err(), "{start}");
        }
    }
}
