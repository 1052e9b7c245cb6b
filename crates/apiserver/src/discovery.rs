//! Serves discovery, in the legacy form (a document per group and version) and the aggregated form (one for all groups)
//! (<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api>). Both follow from the resource declarations
//! of this server, and from the registered API services, whose resources other servers may serve. The aggregated form has
//! the resources of the other servers of the cluster, too, unless the client wants those of this server alone.

mod aggregated;
mod api_services;
mod consensus_order;
mod group;
mod legacy;
mod merge;
mod peer_metrics;
mod peers;

use crate::{
    base::{
        body::Body,
        compression::Compressible,
        encoding::encode,
        negotiation::{self, Accepted, Answers, MediaType, MediaTypes, Offers, Route, accept_clauses},
        request::{Request, header_text, query_of},
        response::{Response, json_failure, negotiated_failure, with_content_type},
    },
    registry::{Stores, VersionedResource},
};
pub use api_services::{ApiServiceGroups, ApiServiceSource, RegisteredVersion};
use bytes::Bytes;
use group::{Group, Listed, add, custom_group};
use http::{HeaderMap, HeaderValue, header};
use merge::{MergedGroup, Priority, merge};
use parking_lot::Mutex;
use peer_metrics::PeerMetrics;
pub use peers::{PeerGroupSource, PeerGroups};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_schema::Schema;
use prometheus::{IntCounter, core::Collector};
use sha2::{Digest, Sha512};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// The discovery documents of a server's resources and of registered API services. They follow changes of custom resources
/// and of API services: the document of one group is built for each request; documents of all groups are cached until the
/// next change.
pub struct Discovery {
    fixed: Vec<Arc<Group>>,
    custom: Option<Arc<Stores>>,
    api_services: Option<Arc<dyn ApiServiceSource>>,
    priority: Priority,
    server_address: String,
    whole: Mutex<Option<Arc<Whole>>>,
    merges: IntCounter,
    peers: Option<Peers>,
}

/// The part of discovery that knows of other servers of the cluster.
struct Peers {
    /// `None` when the other servers are not asked.
    source: Option<Arc<dyn PeerGroupSource>>,
    merged: Mutex<Option<MergedWithPeers>>,
    metrics: PeerMetrics,
}

/// The groups of all servers of the cluster, at one state of each.
struct MergedWithPeers {
    own: Arc<Whole>,
    peers: Arc<PeerGroups>,
    /// `None` when they are those of this server.
    document: Option<Value>,
    aggregated: HashMap<MediaType, Aggregated>,
}

/// All groups, and documents of all groups, at one count of custom resource changes and one set of API services.
struct Whole {
    changes: u64,
    api_services: Option<Arc<ApiServiceGroups>>,
    /// The groups of this server.
    groups: Vec<Arc<Group>>,
    merged: Vec<MergedGroup>,
    aggregated: Mutex<HashMap<(MediaType, bool), Aggregated>>,
}

/// An aggregated document, and its entity tag.
#[derive(Clone)]
struct Aggregated {
    bytes: Bytes,
    etag: String,
}

impl Discovery {
    /// Discovery of these resources, and of the custom resources of `custom`.
    pub fn new(
        resources: &[Arc<VersionedResource>],
        custom: Option<Arc<Stores>>,
        priority: Priority,
        server_address: String,
    ) -> Discovery {
        let mut groups: Vec<Group> = Vec::new();
        for resource in resources {
            let resource = resource.resource.clone();
            add(&mut groups, Listed { resource, is_terminating: false, serves_storage: true });
        }
        for group in &mut groups {
            let name = group.name.clone();
            group.versions.sort_by_key(|version| Reverse(priority(&name, &version.name).1));
            for version in &mut group.versions {
                version.resources.sort_by(|a, b| a.resource.resource.cmp(&b.resource.resource));
            }
        }
        let mut fixed: Vec<_> = groups.into_iter().map(Arc::new).collect();
        sort_groups(&mut fixed, priority);
        let (name, help) = ("aggregator_discovery_aggregation_count_total", AGGREGATION_COUNT);
        let merges = IntCounter::new(name, help).unwrap_or_else(|error| unreachable!("{error}"));
        Discovery {
            fixed,
            custom,
            api_services: None,
            priority,
            server_address,
            whole: Mutex::default(),
            merges,
            peers: None,
        }
    }

    /// Lists the groups and versions of these API services, too.
    #[must_use]
    pub fn with_api_services(self, api_services: Arc<dyn ApiServiceSource>) -> Discovery {
        Discovery { api_services: Some(api_services), ..self }
    }

    /// Distinguishes requests for this server alone (`profile=nopeer`) from others, whose responses list the groups of
    /// other servers of the cluster, too, if there is a source.
    #[must_use]
    pub fn with_peers(self, source: Option<Arc<dyn PeerGroupSource>>) -> Discovery {
        let peers = Peers { source, merged: Mutex::default(), metrics: PeerMetrics::new() };
        Discovery { peers: Some(peers), ..self }
    }

    /// The metrics of discovery, to register.
    pub fn metrics(&self) -> Vec<Box<dyn Collector>> {
        let mut metrics: Vec<Box<dyn Collector>> = vec![Box::new(self.merges.clone())];
        metrics.extend(self.peers.iter().flat_map(|peers| peers.metrics.collectors()));
        metrics
    }

    /// All current groups.
    fn whole(&self) -> Arc<Whole> {
        let changes = self.custom.as_ref().map_or(0, |stores| stores.custom_changes());
        let api_services = self.api_services.as_ref().map(|source| source.current());
        let is_current = |whole: &Whole| {
            let same = match (&whole.api_services, &api_services) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                (old, new) => old.is_none() && new.is_none(),
            };
            same && whole.changes == changes
        };
        let mut whole = self.whole.lock();
        if let Some(whole) = whole.as_ref().filter(|whole| is_current(whole)) {
            return whole.clone();
        }
        self.merges.inc();
        let mut groups = self.fixed.clone();
        let all = self.custom.as_ref().map(|stores| stores.all_custom()).unwrap_or_default();
        let custom = all.chunk_by(|a, b| a.group() == b.group());
        let custom: Vec<Group> = custom.filter_map(custom_group).collect();
        let merged = merge(&self.fixed, &custom, api_services.as_deref(), self.priority);
        for group in custom {
            match groups.iter_mut().find(|fixed| fixed.name == group.name) {
                Some(fixed) => Arc::make_mut(fixed).versions.extend(group.versions),
                None => groups.push(Arc::new(group)),
            }
        }
        sort_groups(&mut groups, self.priority);
        let made = Arc::new(Whole { changes, api_services, groups, merged, aggregated: Mutex::default() });
        *whole = Some(made.clone());
        made
    }

    fn find(&self, name: &str) -> Option<Arc<Group>> {
        let fixed = self.fixed.iter().find(|own| own.name == name);
        let custom = self.custom.as_ref().and_then(|stores| custom_group(&stores.custom_of_group(name)));
        match (fixed, custom) {
            (fixed, None) => fixed.cloned(),
            (None, Some(custom)) => Some(Arc::new(custom)),
            (Some(fixed), Some(custom)) => {
                let mut group = Group::clone(fixed);
                group.versions.extend(custom.versions);
                Some(Arc::new(group))
            }
        }
    }

    /// The document of a discovery path; `None` for other paths. A route of the web services refuses media types by
    /// another message.
    pub fn serve(&self, path: &str, request: &Request, is_routed: bool) -> Option<Response> {
        let headers = request.headers();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (document, kind) = match parts.as_slice() {
            ["api"] => {
                if let Some(response) = self.aggregated(headers, true) {
                    return Some(response);
                }
                (self.api_versions(), "k8s.io/apimachinery/pkg/apis/meta/v1.APIVersions")
            }
            ["apis"] => {
                if !path.ends_with('/')
                    && let Some(response) = self.aggregated(headers, false)
                {
                    return Some(response);
                }
                (self.group_list(), "k8s.io/apimachinery/pkg/apis/meta/v1.APIGroupList")
            }
            ["api", version] => (self.resource_list("", version)?, RESOURCE_LIST),
            ["apis", group] => (self.group(group)?, "k8s.io/apimachinery/pkg/apis/meta/v1.APIGroup"),
            ["apis", group, version] => (self.resource_list(group, version)?, RESOURCE_LIST),
            _ => return None,
        };
        Some(respond(&document, kind, request, is_routed))
    }

    /// Whether a discovery path is a route of the web services; the version of custom resources is none.
    pub fn has_route(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["apis", group, version] => {
                let group = self.fixed.iter().find(|own| own.name == *group);
                group.is_some_and(|group| group.versions.iter().any(|own| own.name == *version))
            }
            _ => true,
        }
    }

    /// The paths below `/api` and `/apis` for the list of all paths.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec!["/api".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
        let whole = self.whole();
        for group in &whole.groups {
            if group.name.is_empty() {
                paths.extend(group.versions.iter().map(|version| format!("/api/{}", version.name)));
                continue;
            }
            paths.push(format!("/apis/{}", group.name));
            paths.extend(
                group.versions.iter().map(|version| format!("/apis/{}/{}", group.name, version.name)),
            );
        }
        let remote = whole.api_services.as_ref().map(|own| own.remote()).unwrap_or_default();
        paths.extend(remote.iter().flat_map(|version| {
            let group = format!("/apis/{}", version.group);
            [format!("{group}/{}", version.version), group]
        }));
        paths.sort();
        paths.dedup();
        paths
    }

    fn aggregated(&self, headers: &HeaderMap, core: bool) -> Option<Response> {
        let Wanted { media_type, no_peer } = wants_aggregated(headers)?;
        let Aggregated { bytes, etag } = match &self.peers {
            Some(peers) if no_peer => {
                peers.metrics.no_peer.inc();
                self.aggregated_bytes(media_type, core)?
            }
            // The core group is in the document of `/api`, which tells of this server alone.
            Some(Peers { source: Some(source), merged, metrics }) if !core => {
                self.with_those_of_peers(media_type, source.current(), merged, metrics)?
            }
            _ => self.aggregated_bytes(media_type, core)?,
        };
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
                compressible(with_content_type(200, &content_type, bytes))
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

    fn aggregated_bytes(&self, media_type: MediaType, core: bool) -> Option<Aggregated> {
        let whole = self.whole();
        let mut made = whole.aggregated.lock();
        if let Some(aggregated) = made.get(&(media_type, core)) {
            return Some(aggregated.clone());
        }
        let aggregated = Aggregated::encode(&aggregated::document(&whole.merged, core), media_type)?;
        made.insert((media_type, core), aggregated.clone());
        Some(aggregated)
    }

    /// The document of all groups but the core group, of all servers.
    fn with_those_of_peers(
        &self,
        media_type: MediaType,
        peers: Arc<PeerGroups>,
        merged: &Mutex<Option<MergedWithPeers>>,
        metrics: &PeerMetrics,
    ) -> Option<Aggregated> {
        let own = self.whole();
        let mut merged = merged.lock();
        let is_current =
            |merged: &MergedWithPeers| Arc::ptr_eq(&merged.own, &own) && Arc::ptr_eq(&merged.peers, &peers);
        match merged.as_ref().is_some_and(is_current) {
            true => metrics.hits.inc(),
            false => {
                metrics.misses.inc();
                let document = aggregated::document(&own.merged, false);
                let document = peers::merge(document.items_at("items"), &peers).map(aggregated::list);
                *merged = Some(MergedWithPeers { own, peers, document, aggregated: HashMap::new() });
            }
        }
        let merged = merged.as_mut()?;
        let Some(document) = &merged.document else { return self.aggregated_bytes(media_type, false) };
        if let Some(aggregated) = merged.aggregated.get(&media_type) {
            return Some(aggregated.clone());
        }
        let aggregated = Aggregated::encode(document, media_type)?;
        merged.aggregated.insert(media_type, aggregated.clone());
        Some(aggregated)
    }
}

impl Aggregated {
    fn encode(document: &Value, media_type: MediaType) -> Option<Aggregated> {
        let accepted = Accepted { media_type, ..Accepted::JSON };
        let schema = Schema::builtin().by_type_name("k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList")?;
        let bytes = encode(document, schema, &accepted).ok()?;
        let etag = format!("\"{}\"", hex(&Sha512::digest(&bytes)));
        Some(Aggregated { bytes, etag })
    }
}

/// Sorts groups by the priority of their first version, highest first, then by name.
fn sort_groups(groups: &mut [Arc<Group>], priority: Priority) {
    let first =
        |group: &Group| group.versions.first().map(|version| version.name.clone()).unwrap_or_default();
    groups.sort_by_cached_key(|group| (Reverse(priority(&group.name, &first(group)).0), group.name.clone()));
}

const AGGREGATION_COUNT: &str = "Counter of number of times discovery was aggregated";
const RESOURCE_LIST: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.APIResourceList";

/// A request for the aggregated form.
struct Wanted {
    media_type: MediaType,
    /// Whether the groups of this server alone are wanted.
    no_peer: bool,
}

/// The media type of the aggregated form, if the client accepts it, whatever it prefers.
fn wants_aggregated(headers: &HeaderMap) -> Option<Wanted> {
    let header = header_text(headers, header::ACCEPT);
    for clause in accept_clauses(header) {
        let media_type = match (clause.kind, clause.subtype) {
            ("application", "json" | "*") | ("*", "*") => MediaType::Json,
            ("application", "yaml") => MediaType::Yaml,
            ("application", "vnd.kubernetes.protobuf") => MediaType::Protobuf,
            _ => continue,
        };
        let parameter = |name| clause.parameter(name);
        let form = (parameter("g"), parameter("v"), parameter("as"));
        if form == (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) {
            return Some(Wanted { media_type, no_peer: parameter("profile") == Some("nopeer") });
        }
    }
    None
}

fn respond(document: &Value, type_name: &str, request: &Request, is_routed: bool) -> Response {
    let (headers, query) = (request.headers(), query_of(request));
    let answers = Answers {
        offers: Offers::Plain,
        route: is_routed.then_some(Route::Plain),
        has_protobuf: true,
        media_types: MediaTypes::COMMON,
        go_type: &String::new,
    };
    let accepted = negotiation::accepted_of(headers, query.first("pretty"), answers);
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(status) => return negotiated_failure(&status, headers, None),
    };
    let bytes = match Schema::builtin().by_type_name(type_name) {
        Some(schema) => encode(document, schema, &accepted),
        None => Err(Status::internal_error("no schema for discovery")),
    };
    match bytes {
        Ok(bytes) => compressible(with_content_type(200, accepted.media_type.as_str(), bytes)),
        Err(status) => json_failure(&status),
    }
}

fn compressible(mut response: Response) -> Response {
    response.extensions_mut().insert(Compressible);
    response
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
