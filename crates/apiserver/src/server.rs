//! A generic API server: filter chain, API endpoints, plain endpoints, and a delegate for paths that it does not serve.

mod debug_flags;
mod flagz;
mod host_logs;
mod metrics_endpoint;
mod pprof;
mod statusz;
mod zpage;

pub use debug_flags::VerbositySetter;
pub use flagz::FlagValues;
pub use host_logs::HostLogs;
pub use pprof::Profiles;

use crate::{
    base::{
        body::Body,
        finish::{CountLate, Finish},
        handler::Handler,
        negotiation::{MediaType, MediaTypes},
        request::{Request, info_of, path_of, query_of, user_of},
        request_info::RequestInfo,
        response::{Response, accept_only, negotiated_failure, not_found, with_content_type},
    },
    discovery::Discovery,
    endpoints::{ApiEndpoints, WriteLimit, method_not_allowed},
    filters::{ChainConfig, chain},
    health::Health,
    metrics::{Metrics, StorageSizes},
    registry::Stores,
};
use futures_util::future::{Either, select};
use http::{HeaderMap, Method};
use pintle_machinery::{GroupVersionResource, Status, Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Plain endpoints that a server may have besides its resources, such as OpenAPI.
pub trait PlainEndpoints: Send + Sync {
    /// Limits how many requests are answered at a time; the others wait without a thread. `None` for paths whose answers
    /// take no time, and those of other endpoints.
    fn turns(&self, _request: &Request) -> Option<&Semaphore> {
        None
    }
    /// Answers a request; `None` for a path of another endpoint.
    fn serve(&self, request: &Request) -> Option<Response>;
    /// The paths, for the list of all paths.
    fn paths(&self) -> Vec<String>;
}

/// Groups and versions that other servers serve: the aggregator's part in the delegation chain.
pub trait RemoteGroups: Send + Sync {
    /// The handler of a path that another server serves; `None` for other paths. The filters have run before it.
    fn handler(&self, path: &str) -> Option<Handler>;
}

/// Resources that other servers of the same cluster serve, which may have another version.
pub trait PeerResources: Send + Sync {
    /// The handler of a resource request that this server does not serve itself; `None` when no other server serves it
    /// either, or the request must not be forwarded. The filters have run before it.
    fn handler(&self, info: &RequestInfo, headers: &HeaderMap) -> Option<Handler>;
}

/// One server of the delegation chain.
#[non_exhaustive]
pub struct GenericApiServer {
    /// The server's resources.
    pub endpoints: ApiEndpoints,
    /// The answer to `/version`.
    pub version: Value,
    /// The server that gets the requests that this one does not serve.
    pub delegate: Option<Arc<GenericApiServer>>,
    /// The endpoints that only the first server of the chain has.
    pub front: Option<Front>,
}

/// Endpoints of the first server of the chain, which cover the whole chain.
#[non_exhaustive]
pub struct Front {
    /// Discovery of all servers of the chain.
    pub discovery: Discovery,
    /// The health checks of the process.
    pub health: Arc<Health>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// All stores of the chain.
    pub stores: Vec<Arc<Stores>>,
    /// The size of the stored data in bytes, as last measured.
    pub storage_sizes: Arc<StorageSizes>,
    /// The profiles of the process; `None` without their endpoints.
    pub profiles: Option<Profiles>,
    /// Sets the verbosity of the log; `None` if it is fixed.
    pub verbosity: Option<VerbositySetter>,
    /// The values of the flags, for `/flagz`; `None` without this endpoint.
    pub flags: Option<FlagValues>,
    /// Whether there is `/statusz`.
    pub has_statusz: bool,
    /// The encodings of `/flagz` and `/statusz`, beside plain text.
    pub pages: MediaTypes,
    /// The files of the host's log, for `/logs`; `None` without this endpoint.
    pub host_logs: Option<HostLogs>,
    /// Whether the metrics include the number of objects.
    pub count_objects: bool,
    /// OpenAPI and similar endpoints.
    pub documents: Vec<Arc<dyn PlainEndpoints>>,
    /// Groups and versions of other servers, which shadow those of this one; `None` without an aggregator.
    pub remote: Option<Arc<dyn RemoteGroups>>,
    /// Resources that this server lacks and its peers serve; `None` without peers.
    pub peers: Option<Arc<dyn PeerResources>>,
}

impl GenericApiServer {
    /// The last server of a chain, behind the first.
    pub fn new(endpoints: ApiEndpoints, version: Value) -> GenericApiServer {
        GenericApiServer { endpoints, version, delegate: None, front: None }
    }

    /// The filter chain, with the delegation chain of servers behind it.
    pub fn into_handler(self: Arc<Self>, config: ChainConfig) -> Handler {
        let director = Handler::new(move |request| {
            let server = self.clone();
            async move { server.direct(request).await }
        });
        chain(config, director)
    }

    /// Answers a request, or passes it to the delegate.
    async fn direct(self: Arc<Self>, request: Request) -> Response {
        let info = info_of(&request);
        if has_empty_beginning(request.uri().path()) {
            return not_found();
        }
        if let Some(handler) = self.remote_handler(&info, request.uri().path()) {
            return handler.call(request).await;
        }
        if let Some(handler) = self.peer_handler(&info, request.headers()) {
            return handler.call(request).await;
        }
        let request = match &self.front {
            // Requests of resources, which are nearly all, do not carry the futures of these endpoints.
            Some(front) if !info.is_resource_request => match Box::pin(front.serve_slowly(request)).await {
                Ok(response) => return response,
                Err(request) => request,
            },
            _ => request,
        };
        if let Some(response) = self.front.as_ref().and_then(|front| front.serve(&request, &self)) {
            return response;
        }
        if info.is_resource_request {
            let mut server = &self;
            loop {
                if server.endpoints.serves(&info) {
                    return server.serve(request, info).await;
                }
                match &server.delegate {
                    Some(delegate) => server = delegate,
                    None => break,
                }
            }
        }
        // An unknown version of a served group gets a Status; other unknown paths get the plain 404.
        if self.knows_group(&info.api_group, request.uri().path()) {
            let query = query_of(&request);
            return negotiated_failure(&Status::no_such_resource(), request.headers(), query.first("pretty"));
        }
        not_found()
    }

    /// Answers a request for a resource of this server.
    async fn serve(self: &Arc<Self>, mut request: Request, info: Arc<RequestInfo>) -> Response {
        let (user, query) = (user_of(&request), query_of(&request));
        let Some((limit, answered)) = WriteLimit::of(&mut request, &info) else {
            return self.endpoints.serve(request, &info, &user, &query, None).await;
        };
        let (server, late) = (self.clone(), CountLate(self.endpoints.metrics.clone()));
        let write = async move { server.endpoints.serve(request, &info, &user, &query, Some(limit)).await };
        // The response at the limit comes while the write goes on, and then leaves it to a task.
        match select(Finish::new(Box::pin(write), late), answered).await {
            Either::Left((response, _)) | Either::Right((Ok(response), _)) => response,
            Either::Right((Err(_), write)) => write.await,
        }
    }

    /// The handler of a request that another server serves. The resources of this server itself, API services, cannot be
    /// shadowed.
    fn remote_handler(&self, info: &RequestInfo, path: &str) -> Option<Handler> {
        let remote = self.front.as_ref()?.remote.as_ref()?;
        let handler = remote.handler(path)?;
        (!self.endpoints.serves(info)).then_some(handler)
    }

    /// The handler of a request for a resource that no server of the chain has, and a peer has.
    fn peer_handler(&self, info: &RequestInfo, headers: &HeaderMap) -> Option<Handler> {
        let peers = self.front.as_ref()?.peers.as_ref()?;
        if !info.is_resource_request || self.has_resource(&info.group_version_resource()) {
            return None;
        }
        peers.handler(info, headers)
    }

    fn has_resource(&self, resource: &GroupVersionResource) -> bool {
        self.endpoints.stores.find(resource).is_some()
            || self.delegate.as_ref().is_some_and(|delegate| delegate.has_resource(resource))
    }

    /// Whether this server itself has a resource of the group.
    fn has_group(&self, group: &str) -> bool {
        let own = self.endpoints.stores.resources().iter();
        own.into_iter().any(|resource| resource.resource.resource.group == group)
    }

    fn knows_group(&self, group: &str, path: &str) -> bool {
        let group = match path.trim_start_matches('/').split('/').collect::<Vec<_>>().as_slice() {
            ["api", ..] => "",
            ["apis", name, ..] if !name.is_empty() => name,
            _ if group.is_empty() => return false,
            _ => group,
        };
        self.has_group(group)
            || self.delegate.as_ref().is_some_and(|delegate| delegate.knows_group(group, path))
    }
}

impl Front {
    /// The endpoints of a server without an aggregator, peers, profiles, logs of the host and OpenAPI documents.
    pub fn new(
        discovery: Discovery,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
        stores: Vec<Arc<Stores>>,
    ) -> Front {
        Front {
            discovery,
            health,
            metrics,
            stores,
            storage_sizes: Arc::default(),
            profiles: None,
            verbosity: None,
            flags: None,
            has_statusz: true,
            pages: MediaTypes::of_pages(false),
            host_logs: None,
            count_objects: true,
            documents: Vec::new(),
            remote: None,
            peers: None,
        }
    }

    /// Answers a request of metrics, profiles, log levels, log files or documents that take turns; `Err` gives back a request of another path.
    async fn serve_slowly(&self, request: Request) -> Result<Response, Request> {
        if let Some(response) = metrics_endpoint::serve(self, &request).await {
            return Ok(response);
        }
        let request = match serve_debug(self.profiles.as_ref(), self.verbosity.as_ref(), request).await {
            Ok(response) => return Ok(response),
            Err(request) => request,
        };
        let request = match serve_in_turn(&self.documents, request).await {
            Ok(response) => return Ok(response),
            Err(request) => request,
        };
        match &self.host_logs {
            Some(logs) => logs.serve(&request).await.ok_or(request),
            None => Err(request),
        }
    }

    /// Answers a request of another path of the process; `own` is the first server of the chain.
    fn serve(&self, request: &Request, own: &GenericApiServer) -> Option<Response> {
        let path = path_of(request.uri());
        let path = path.as_ref();
        let query = query_of(request);
        if let Some(response) = self.health.serve(path, &query) {
            return Some(response);
        }
        if let Some(response) = self.documents.iter().find_map(|documents| documents.serve(request)) {
            return Some(response);
        }
        match path {
            "/" | "/index.html" => return Some(self.root()),
            "/statusz" if self.has_statusz => return Some(statusz::serve(self, request, &own.version)),
            "/flagz" => return self.flags.as_ref().map(|flags| flagz::serve(flags, request, self.pages)),
            // The paths below belong to the web service of the version.
            path if path.strip_prefix("/version/").is_some_and(|rest| !rest.is_empty()) => {
                let pretty = query.first("pretty");
                return Some(negotiated_failure(&Status::no_such_resource(), request.headers(), pretty));
            }
            _ => {}
        }
        match path.strip_suffix('/').unwrap_or(path) {
            "/version" => Some(self.only_get(request, |request| version_document(request, &own.version))),
            stripped if stripped.ends_with('/') => None,
            stripped
                if stripped == "/api"
                    || stripped == "/apis"
                    || stripped.starts_with("/api/")
                    || stripped.starts_with("/apis/") =>
            {
                // The aggregator serves the documents of groups, except its own, and the server of custom resources those of
                // their versions, for every method; they are no routes of the web services.
                let is_routed = match stripped.strip_prefix("/apis").map(|rest| rest.strip_prefix('/')) {
                    Some(None) => false,
                    Some(Some(group)) => group.contains('/') || own.has_group(group),
                    None => true,
                };
                let is_routed = is_routed && self.discovery.has_route(path);
                let response = self.discovery.serve(path, request, is_routed)?;
                match *request.method() {
                    Method::GET => Some(response),
                    _ if !is_routed => Some(response),
                    _ => Some(refuse_method(request)),
                }
            }
            _ => None,
        }
    }

    fn only_get(&self, request: &Request, answer: impl FnOnce(&Request) -> Response) -> Response {
        match *request.method() {
            Method::GET => answer(request),
            _ => refuse_method(request),
        }
    }

    /// The list of all paths, for every method.
    fn root(&self) -> Response {
        let mut paths = self.discovery.paths();
        paths.extend(self.health.paths());
        paths.extend(self.documents.iter().flat_map(|documents| documents.paths()));
        paths.extend(["/metrics", "/metrics/slis", "/version"].map(str::to_owned));
        paths.extend(self.has_statusz.then(|| "/statusz".to_owned()));
        paths.extend(self.flags.as_ref().map(|_| "/flagz".to_owned()));
        paths.sort();
        let document = json!({"paths": paths});
        with_content_type(200, MediaType::Json.as_str(), Body::from(format!("{document:#}")))
    }
}

/// Answers a request of `/debug/pprof` or `/debug/flags`; `Err` gives back a request of another path.
pub(crate) async fn serve_debug(
    profiles: Option<&Profiles>,
    verbosity: Option<&VerbositySetter>,
    request: Request,
) -> Result<Response, Request> {
    if let Some(setter) = verbosity
        && debug_flags::serves(&path_of(request.uri()))
    {
        return Ok(debug_flags::serve(setter, request).await);
    }
    match profiles {
        Some(profiles) => profiles.serve(request).await,
        None => Err(request),
    }
}

/// Whether the first part of a path is empty, or the group. No path of the server is like that, though the `RequestInfo` of
/// such a path can name a resource: the core group has another prefix.
fn has_empty_beginning(path: &str) -> bool {
    let begins_with_slash = |rest: &str| {
        rest.starts_with('/') || rest.get(..3).is_some_and(|escape| escape.eq_ignore_ascii_case("%2f"))
    };
    let Some(rest) = path.strip_prefix('/') else { return false };
    begins_with_slash(rest) || rest.strip_prefix("apis/").is_some_and(begins_with_slash)
}

fn version_document(request: &Request, version: &Value) -> Response {
    if let Err(refusal) = accept_only(request.headers(), MediaType::Json.as_str()) {
        return *refusal;
    }
    let members = VERSION_FIELDS
        .iter()
        .filter_map(|name| version.get(*name).map(|value| format!("  \"{name}\": {value}")));
    let text = format!("{{\n{}\n}}", members.collect::<Vec<_>>().join(",\n"));
    with_content_type(200, MediaType::Json.as_str(), Body::from(text))
}

/// The fields of `version.Info`, in the order of the Go type.
const VERSION_FIELDS: [&str; 13] = [
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
];

/// The 405 for a method that a path of the server itself does not have.
fn refuse_method(request: &Request) -> Response {
    negotiated_failure(&method_not_allowed(), request.headers(), query_of(request).first("pretty"))
}

/// Answers a request of endpoints whose requests take turns; `Err` gives back any other.
async fn serve_in_turn(documents: &[Arc<dyn PlainEndpoints>], request: Request) -> Result<Response, Request> {
    for documents in documents {
        if let Some(turns) = documents.turns(&request) {
            // Never closed.
            let _turn = turns.acquire().await;
            return documents.serve(&request).ok_or(request);
        }
    }
    Err(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{body::RequestBody, response::empty};
    use bytes::Bytes;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Endpoints that count how many requests they answer at a time.
    #[derive(Default)]
    struct Counting {
        turns: Option<Semaphore>,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl PlainEndpoints for Counting {
        fn turns(&self, request: &Request) -> Option<&Semaphore> {
            self.turns.as_ref().filter(|_| request.uri().path() == "/slow")
        }

        fn serve(&self, _: &Request) -> Option<Response> {
            self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            pintle_offload::aside(std::thread::yield_now);
            self.now.fetch_sub(1, Ordering::SeqCst);
            Some(empty(200))
        }

        fn paths(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn a_stampede_on_documents_takes_turns() {
        let counting = Arc::new(Counting { turns: Some(Semaphore::new(2)), ..Counting::default() });
        let documents: Arc<[Arc<dyn PlainEndpoints>]> =
            Arc::new([Arc::new(Counting::default()), counting.clone()]);
        let request = |path: &str| http::Request::get(path).body(RequestBody::Bytes(Bytes::new())).unwrap();
        let tasks: Vec<_> = (0..500)
            .map(|_| {
                let (documents, request) = (documents.clone(), request("/slow"));
                tokio::spawn(async move { serve_in_turn(&documents, request).await.is_ok() })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap());
        }
        assert!((1..=2).contains(&counting.most.load(Ordering::SeqCst)), "{:?}", counting.most);
        assert!(serve_in_turn(&documents, request("/healthz")).await.is_err());
    }

    #[test]
    fn paths_without_a_first_part_or_a_group_are_not_served() {
        for path in ["//", "//api/v1/pods", "/%2fapi/v1", "/apis//v1", "/apis//v1/pods", "/apis/%2Fv1/pods"] {
            assert!(has_empty_beginning(path), "{path}");
        }
        for path in
            ["", "/", "/apis/", "/api//v1", "/apis/apps//v1", "/api/v1/namespaces//pods", "/apis/%2Ga"]
        {
            assert!(!has_empty_beginning(path), "{path}");
        }
    }
}
