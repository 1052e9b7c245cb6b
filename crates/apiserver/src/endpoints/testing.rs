//! A server on the memory engine, for the tests of the verbs.

use super::ApiEndpoints;
use crate::{
    base::{
        body::{Body, RequestBody},
        negotiation::MediaTypes,
        query::Query,
        request_info::RequestInfo,
        response::Response,
    },
    metrics::Metrics,
    registry::{CustomResource, Engine, StorageFactory, Stores},
    transports::Transports,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderName, Method, Request, header};
use http_body_util::BodyExt as _;
use pintle_auth::authz::AlwaysAllow;
use pintle_cacher::Cacher;
use pintle_dialer::Dialer;
use pintle_machinery::{
    ErrorList, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Status, UserInfo, Value,
    ValueExt,
};
use pintle_registry::{
    Backing, BoxFuture, ComputedObjects, ConnectOptions, Connecter, Converter, Destination, NamedCreater,
    ObjectForm, ObjectModel, PatchType, RequestContext, Resource, Routing, ScalePaths, ScaleValues, Scope,
    StorageEncoding, Strategy, Subresource, SubresourceKind, Verb, keep,
};
use pintle_schema::{SchemaBuilder, Structural, Type};
use pintle_storage::MemoryStorage;
use pintle_supervisor::Supervisor;
use std::{
    future::ready,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// The collection of the config maps that the tests write.
pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The collection of the widgets that the tests write.
pub(super) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// The collection of the balloons that the tests write, in the version that is stored.
pub(super) const BALLOONS: &str = "/apis/example.com/v1/namespaces/default/balloons";

/// The same in another version, in which objects are larger by [`INFLATED`] bytes.
pub(super) const INFLATED_BALLOONS: &str = "/apis/example.com/v2/namespaces/default/balloons";

/// The bytes of a balloon's air.
pub(super) const INFLATED: usize = 60_000;

/// Serves config maps with an `eviction` that returns its body, deployments with a status and a scale, pods with a
/// `log`, nodes, and widgets and balloons, which have the object model of custom resources.
pub(super) struct TestServer {
    endpoints: ApiEndpoints,
    inflation: Arc<Inflate>,
    _shutdown: watch::Sender<bool>,
}

impl TestServer {
    pub(super) async fn start() -> TestServer {
        TestServer::start_with(|storage| storage).await
    }

    pub(super) async fn start_with(change: impl FnOnce(StorageFactory) -> StorageFactory) -> TestServer {
        let engine = Engine { storage: Arc::new(MemoryStorage::new()), exclusive: true };
        let storage = Arc::new(change(StorageFactory::new(engine, "/registry")));
        let stores = Stores::start(resources(), Vec::new(), &storage, &Supervisor::current()).unwrap();
        let (served, terminating) = (|_: &Resource| true, Arc::default());
        let inflation = Arc::new(Inflate::default());
        let versions = ["v1", "v2"].map(|version| balloons(version, &inflation)).to_vec();
        let custom =
            CustomResource::start(versions, served, terminating, &storage, &Supervisor::current()).unwrap();
        stores.serve_custom(custom);
        stores.wait_ready().await.unwrap();
        let (sender, shutdown) = watch::channel(false);
        let transports = Arc::new(Transports::new(Duration::from_secs(5), None, Dialer::default()).unwrap());
        let metrics = Arc::new(Metrics::new().unwrap());
        let endpoints = ApiEndpoints {
            has_shards: true,
            delete_collection_workers: 2,
            ..ApiEndpoints::new(stores, Arc::new(AlwaysAllow), transports, metrics, shutdown)
        };
        TestServer { endpoints, inflation, _shutdown: sender }
    }

    /// The same server with CBOR.
    pub(super) fn with_cbor(mut self) -> TestServer {
        self.endpoints.media_types = MediaTypes::of_resources(true);
        self
    }

    /// Fails one conversion of balloons: the next one for 1; none for 0.
    pub(super) fn fail_conversion(&self, number: usize) {
        self.inflation.fails_in.store(number, Ordering::SeqCst);
    }

    /// The response to a request.
    pub(super) async fn respond(&self, method: &str, uri: &str, content_type: &str, body: &str) -> Response {
        self.respond_with(method, uri, &[(header::CONTENT_TYPE, content_type)], body).await
    }

    /// The response to a request with these headers.
    pub(super) async fn respond_with(
        &self,
        method: &str,
        uri: &str,
        headers: &[(HeaderName, &str)],
        body: &str,
    ) -> Response {
        let body = RequestBody::Bytes(Bytes::copy_from_slice(body.as_bytes()));
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.serve(request.body(body).unwrap()).await
    }

    /// The response to a request.
    pub(super) async fn serve(&self, request: Request<RequestBody>) -> Response {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let method: Method = request.method().clone();
        let info = RequestInfo::parse(&method, request.uri().path(), &query);
        let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        self.endpoints.serve(request, &info, &user, &query, None).await
    }

    /// The code and the JSON of the response to a request with a body of this content type.
    pub(super) async fn send_as(
        &self,
        method: &str,
        uri: &str,
        content_type: &str,
        body: Value,
    ) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.respond(method, uri, content_type, &body).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap();
        (code, serde_json::from_slice(&body.to_bytes()).unwrap())
    }

    /// The code and the JSON of the response to a request with a JSON body; none if it is null.
    pub(super) async fn send(&self, method: &str, uri: &str, body: Value) -> (u16, Value) {
        self.send_as(method, uri, "application/json", body).await
    }

    /// The text of the response to a GET.
    pub(super) async fn text(&self, uri: &str) -> String {
        let body = self.respond("GET", uri, "", "").await.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    /// The frames of a streamed response.
    pub(super) async fn frames(&self, uri: &str) -> impl Stream<Item = Bytes> + Unpin + use<> {
        match self.respond("GET", uri, "", "").await.into_body() {
            Body::Stream(frames) => frames,
            Body::Full(body) => panic!("not a stream: {body:?}"),
            Body::Foreign(_) => panic!("not of this server"),
        }
    }

    /// The first frame of a streamed response.
    pub(super) async fn first_frame(&self, uri: &str) -> Bytes {
        self.frames(uri).await.next().await.unwrap()
    }

    /// The watch cache of the config maps.
    pub(super) fn config_maps(&self) -> Arc<Cacher> {
        let store = self.endpoints.stores.store(&GroupResource::new("", "configmaps")).unwrap();
        store.cacher().clone()
    }

    /// Creates a config map with one label.
    pub(super) async fn create_config_map(&self, name: &str, app: &str) -> Value {
        let (code, object) = self.send("POST", CONFIG_MAPS, config_map(name, app)).await;
        assert_eq!(code, 201, "{object}");
        object
    }
}

/// A widget with a spec.
pub(super) fn widget(name: &str) -> Value {
    pintle_machinery::json!({
        "kind": "Widget",
        "apiVersion": "example.com/v1",
        "metadata": {"name": name},
        "spec": {"size": 1},
    })
}

/// A config map with one label.
pub(super) fn config_map(name: &str, app: &str) -> Value {
    pintle_machinery::json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": app}},
        "data": {"a": "1"},
    })
}

fn resources() -> Vec<Resource> {
    let core = |plural, singular, kind, scope| {
        let type_name = format!("k8s.io/api/core/v1.{kind}");
        Resource::new("", "v1", plural, singular, kind, scope, &type_name)
    };
    let mut config_maps = core("configmaps", "configmap", "ConfigMap", Scope::Namespaced);
    config_maps.subresources = vec![Subresource {
        name: "eviction".to_owned(),
        kind: SubresourceKind::Create {
            kind: GroupVersionKind::new("policy", "v1", "Eviction"),
            other_versions: vec!["v1beta1".to_owned()],
            creater: Arc::new(Echo),
        },
    }];
    let mut pods = core("pods", "pod", "Pod", Scope::Namespaced);
    pods.subresources = vec![Subresource {
        name: "log".to_owned(),
        kind: SubresourceKind::Connect {
            kind: GroupVersionKind::new("", "v1", "Pod"),
            options: ConnectOptions {
                kind: GroupVersionKind::new("", "v1", "PodLogOptions"),
                validate: |_| ErrorList::default(),
            },
            verbs: vec![Verb::Get],
            is_proxy: false,
            connecter: Arc::new(Nowhere),
        },
    }];
    let mut deployments = Resource::new(
        "apps",
        "v1",
        "deployments",
        "deployment",
        "Deployment",
        Scope::Namespaced,
        "k8s.io/api/apps/v1.Deployment",
    );
    let status = Subresource {
        name: "status".to_owned(),
        kind: SubresourceKind::Object {
            strategy: Arc::new(KeepSpec),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
            has_table: true,
        },
    };
    let scale = Subresource {
        name: "scale".to_owned(),
        kind: SubresourceKind::Scale(ScalePaths {
            spec_replicas: "spec.replicas".to_owned(),
            status_replicas: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
            values: ScaleValues::Typed,
            table: Arc::new(pintle_registry::DefaultTable),
        }),
    };
    deployments.subresources = vec![scale, status];
    let mut statuses = core("componentstatuses", "componentstatus", "ComponentStatus", Scope::Cluster);
    statuses.verbs = vec![Verb::Get, Verb::List];
    statuses.backing = Backing::Computed(Arc::new(TwoStatuses));
    vec![statuses, config_maps, pods, deployments, core("nodes", "node", "Node", Scope::Cluster), widgets()]
}

/// A version of a resource that is stored in `v1`.
fn balloons(version: &str, inflation: &Arc<Inflate>) -> Resource {
    let mut balloons = Resource {
        resource: GroupVersionResource::new("example.com", version, "balloons"),
        singular: "balloon".to_owned(),
        kind: "Balloon".to_owned(),
        list_kind: "BalloonList".to_owned(),
        ..widgets()
    };
    balloons.storage.path = "example.com/balloons".to_owned();
    balloons.storage.kind = GroupVersionKind::new("example.com", "v1", "Balloon");
    balloons.converter = Some(inflation.clone());
    if version == "v2" {
        balloons.strategy = Arc::new(NoKnots);
    }
    balloons
}

/// The strategy of a version without the field `knots`.
struct NoKnots;

impl Strategy for NoKnots {
    fn coerce(&self, object: &mut Value, _is_request: bool) -> Result<Vec<String>, Status> {
        Ok(object.remove_at("knots").map(|_| "knots".to_owned()).into_iter().collect())
    }
}

/// Converts to objects that are much larger.
#[derive(Default)]
struct Inflate {
    /// The number of the conversion that fails, counted down to 0.
    fails_in: AtomicUsize,
}

impl Converter for Inflate {
    fn convert(
        &self,
        mut objects: Vec<Value>,
        to: &GroupVersion,
    ) -> BoxFuture<'_, Result<Vec<Value>, Status>> {
        let left = self.fails_in.load(Ordering::SeqCst);
        self.fails_in.store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 1 {
            return Box::pin(ready(Err(Status::internal_error("conversion failed"))));
        }
        for object in &mut objects {
            object.set("apiVersion", to.to_string());
            object.set("air", "x".repeat(INFLATED));
        }
        Box::pin(ready(Ok(objects)))
    }
}

/// A resource with a schema of its own, which allows any value, and the object model of custom resources.
fn widgets() -> Resource {
    let mut widgets =
        Resource::new("example.com", "v1", "widgets", "widget", "Widget", Scope::Namespaced, "");
    widgets.model = ObjectModel {
        form: ObjectForm::Map,
        routing: Routing::Verbs,
        patch_types: &[PatchType::Json, PatchType::Merge, PatchType::Apply],
        protobuf: false,
        full_response_kind: true,
    };
    widgets.storage.encoding = StorageEncoding::AsWritten;
    widgets.unsupported_field = Some(|_, name| format!("field label not supported: {name}"));
    widgets.own_schema = Some(Arc::new(LazyLock::new(Box::new(|| {
        let mut builder = SchemaBuilder::new();
        let root = builder.scalar(Type::Any);
        builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
        Arc::new(builder.finish(root))
    }))));
    widgets
}

/// The strategy of a status.
struct KeepSpec;

impl Strategy for KeepSpec {
    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }
}

/// Two objects that are computed.
struct TwoStatuses;

impl TwoStatuses {
    fn object(name: &str) -> Value {
        pintle_machinery::json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True"}]})
    }
}

impl ComputedObjects for TwoStatuses {
    fn list(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(ready(["a", "b"].map(TwoStatuses::object).to_vec()))
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        let found = ["a", "b"].contains(&name).then(|| TwoStatuses::object(name));
        Box::pin(ready(found.ok_or_else(Status::no_such_resource)))
    }
}

/// Connects to nothing.
struct Nowhere;

impl Connecter for Nowhere {
    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        _options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        let pods = GroupResource::new("", "pods");
        Box::pin(async move { context.registry.get(&pods, "default", context.name).await.map(|_| None) })
    }
}

/// Returns the body.
struct Echo;

impl NamedCreater for Echo {
    fn create<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(ready(Ok(body)))
    }
}
