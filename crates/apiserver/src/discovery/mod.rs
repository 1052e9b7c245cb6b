//! Discovery: what is served, in the legacy form (a document a group and version) and the aggregated one (all at once)
//! (<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api>). Both follow from the declarations.

mod aggregated;
mod legacy;

use crate::{
    body::Body,
    endpoints::encoding::encode,
    negotiation::{self, Accepted, MediaType, accept_clauses},
    registry::VersionedResource,
    response::{Response, with_content_type},
};
use base64::Engine;
use http::{HeaderMap, HeaderValue, header};
use pintle_machinery::{Status, Value};
use pintle_registry::{Resource, SubresourceKind, Verb};
use pintle_schema::Schema;
use serde_json::json;
use sha2::{Digest, Sha256, Sha512};
use std::sync::Arc;

/// The discovery documents of a set of resources.
pub struct Discovery {
    groups: Vec<Group>,
    server_address: String,
}

/// One group with its versions, the preferred one first.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

/// One version with its resources, sorted by name.
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) resources: Vec<Arc<Resource>>,
}

impl Discovery {
    /// The documents for these resources. `priority` orders groups (and versions of a group): the higher comes first.
    pub fn new(
        resources: &[Arc<VersionedResource>],
        priority: impl Fn(&str, &str) -> (i64, i64),
        server_address: String,
    ) -> Discovery {
        let mut groups: Vec<Group> = Vec::new();
        for resource in resources {
            let id = &resource.resource.resource;
            let at = match groups.iter().position(|group| group.name == id.group) {
                Some(at) => at,
                None => {
                    groups.push(Group { name: id.group.clone(), versions: Vec::new() });
                    groups.len() - 1
                }
            };
            let Some(group) = groups.get_mut(at) else { continue };
            let at = match group.versions.iter().position(|version| version.name == id.version) {
                Some(at) => at,
                None => {
                    group.versions.push(Version { name: id.version.clone(), resources: Vec::new() });
                    group.versions.len() - 1
                }
            };
            if let Some(version) = group.versions.get_mut(at) {
                version.resources.push(resource.resource.clone());
            }
        }
        for group in &mut groups {
            let name = group.name.clone();
            group.versions.sort_by_key(|version| std::cmp::Reverse(priority(&name, &version.name).1));
            for version in &mut group.versions {
                version.resources.sort_by(|a, b| a.resource.resource.cmp(&b.resource.resource));
            }
        }
        let first =
            |group: &Group| group.versions.first().map(|version| version.name.clone()).unwrap_or_default();
        groups.sort_by_key(|group| {
            (std::cmp::Reverse(priority(&group.name, &first(group)).0), group.name.clone())
        });
        Discovery { groups, server_address }
    }

    /// Answers a GET of a discovery path; `None` when the path is none.
    pub fn serve(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (document, kind) = match parts.as_slice() {
            ["api"] => {
                if let Some(response) = self.aggregated(headers, true) {
                    return Some(response);
                }
                (self.api_versions(), "k8s.io/apimachinery/pkg/apis/meta/v1.APIVersions")
            }
            ["apis"] => {
                if let Some(response) = self.aggregated(headers, false) {
                    return Some(response);
                }
                (self.group_list(), "k8s.io/apimachinery/pkg/apis/meta/v1.APIGroupList")
            }
            ["api", version] => (self.resource_list("", version)?, RESOURCE_LIST),
            ["apis", group] => (self.group(group)?, "k8s.io/apimachinery/pkg/apis/meta/v1.APIGroup"),
            ["apis", group, version] => (self.resource_list(group, version)?, RESOURCE_LIST),
            _ => return None,
        };
        Some(respond(&document, kind, headers))
    }

    fn find(&self, group: &str) -> Option<&Group> {
        self.groups.iter().find(|own| own.name == group)
    }

    /// The paths below `/api` and `/apis` for the list of all paths.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec!["/api".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
        for group in &self.groups {
            if group.name.is_empty() {
                paths.extend(group.versions.iter().map(|version| format!("/api/{}", version.name)));
                continue;
            }
            paths.push(format!("/apis/{}", group.name));
            paths.extend(
                group.versions.iter().map(|version| format!("/apis/{}/{}", group.name, version.name)),
            );
        }
        paths
    }

    fn aggregated(&self, headers: &HeaderMap, core: bool) -> Option<Response> {
        let media_type = wants_aggregated(headers)?;
        let document = self.aggregated_document(core);
        let accepted = Accepted { media_type, ..Accepted::JSON };
        let schema = Schema::builtin().by_type_name("k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList")?;
        let bytes = encode(&document, schema, &accepted).ok()?;
        let etag = format!("\"{}\"", hex(&Sha512::digest(&bytes)));
        let is_known =
            headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
        let mut response = match is_known {
            true => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = http::StatusCode::NOT_MODIFIED;
                response
            }
            false => {
                let content_type =
                    format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", media_type.as_str());
                with_content_type(200, &content_type, bytes)
            }
        };
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&etag) {
            headers.insert(header::ETAG, value);
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        Some(response)
    }
}

const RESOURCE_LIST: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.APIResourceList";

/// The media type of the aggregated form, if that is what the client likes best of what there is.
fn wants_aggregated(headers: &HeaderMap) -> Option<MediaType> {
    let header = headers.get(header::ACCEPT)?.to_str().ok()?;
    for clause in accept_clauses(header) {
        let media_type = match clause.name {
            "application/json" => MediaType::Json,
            "application/yaml" => MediaType::Yaml,
            "application/vnd.kubernetes.protobuf" => MediaType::Protobuf,
            "*/*" => return None,
            _ => continue,
        };
        let parameter =
            |name: &str| clause.parameters.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        match (parameter("g"), parameter("v"), parameter("as")) {
            (None, None, None) => return None,
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => {
                return Some(media_type);
            }
            _ => {}
        }
    }
    None
}

fn respond(document: &Value, type_name: &str, headers: &HeaderMap) -> Response {
    let accepted = match negotiation::accepted(headers, None, negotiation::Offers::Plain) {
        Ok(accepted) => accepted,
        Err(status) => return crate::response::json_failure(&status),
    };
    let bytes = match Schema::builtin().by_type_name(type_name) {
        Some(schema) => encode(document, schema, &accepted),
        None => Err(Status::internal_error("no schema for discovery")),
    };
    match bytes {
        Ok(bytes) => with_content_type(200, accepted.media_type.as_str(), bytes),
        Err(status) => crate::response::json_failure(&status),
    }
}

/// A short hash of where a resource is stored, which tells clients when it moves.
pub(crate) fn storage_version_hash(resource: &Resource) -> Option<String> {
    if !resource.is_stored() {
        return None;
    }
    let kind = &resource.storage.kind;
    let digest = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
    Some(base64::engine::general_purpose::STANDARD.encode(digest.get(..8)?))
}

/// The kind and verbs of a subresource.
pub(crate) fn subresource_facts(resource: &Resource, kind: &SubresourceKind) -> (Value, Vec<Verb>) {
    let own = resource.group_version_kind();
    let (kind, verbs) = match kind {
        SubresourceKind::Part { verbs, .. } => (own.clone(), verbs.clone()),
        SubresourceKind::Scale(_) => (
            pintle_machinery::GroupVersionKind::new("autoscaling", "v1", "Scale"),
            vec![Verb::Get, Verb::Patch, Verb::Update],
        ),
        SubresourceKind::Create { kind, .. } => (kind.clone(), vec![Verb::Create]),
        SubresourceKind::Connect { kind, verbs } => (kind.clone(), verbs.clone()),
    };
    let mut verbs = verbs;
    verbs.sort();
    let same = kind.group == own.group && kind.version == own.version;
    let facts = match same {
        true => json!({"group": "", "version": "", "kind": kind.kind}),
        false => json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
    };
    (facts, verbs)
}

pub(crate) fn verb_names(verbs: &[Verb]) -> Value {
    let mut verbs = verbs.to_vec();
    verbs.sort();
    verbs.into_iter().map(Verb::as_str).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
