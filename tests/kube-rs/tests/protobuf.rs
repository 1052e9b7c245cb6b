//! Reads the server's protobuf with an independent decoder: the types of `k8s-pb`, generated from Kubernetes' own
//! definitions.

use std::time::Duration;

use futures_util::TryStreamExt;
use http_body_util::{BodyExt, BodyStream};
use k8s_pb::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, ConfigMapList, Pod, PodList},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Status, WatchEvent},
        runtime::{TypeMeta, Unknown},
    },
};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use pintle_harness::Server;
use pintle_machinery::codec::protobuf;
use pintle_schema::Schema;
use prost::Message;
use serde_json::{Value, json};
use tokio::time::timeout;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;

const PATIENCE: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn start() -> Result<Server> {
    let binary =
        std::env::var_os("PINTLE_SERVER").ok_or("PINTLE_SERVER is not set: run `cargo xtask test e2e`")?;
    Server::start(pintle_harness::Config::new(binary))
}

async fn client(server: &Server) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Requests one media type, with a body in another.
async fn send(
    client: &Client,
    method: &str,
    path: &str,
    accept: &str,
    body: Option<(&str, Vec<u8>)>,
) -> Result<http::Response<Body>> {
    let mut request = http::Request::builder().method(method).uri(path).header("Accept", accept);
    if let Some((media_type, _)) = &body {
        request = request.header("Content-Type", *media_type);
    }
    let body = body.map(|(_, bytes)| Body::from(bytes)).unwrap_or_else(Body::empty);
    Ok(timeout(PATIENCE, client.send(request.body(body)?)).await??)
}

async fn whole(response: http::Response<Body>) -> Result<Vec<u8>> {
    Ok(timeout(PATIENCE, response.into_body().collect()).await??.to_bytes().to_vec())
}

async fn json_of(client: &Client, path: &str) -> Result<Value> {
    let response = send(client, "GET", path, "application/json", None).await?;
    Ok(serde_json::from_slice(&whole(response).await?)?)
}

/// Decodes an object in its envelope.
fn open<M: Message + Default>(body: &[u8], api_version: &str, kind: &str) -> Result<M> {
    let message = body.strip_prefix(b"k8s\0").ok_or("no envelope")?;
    let unknown = Unknown::decode(message)?;
    let wanted = TypeMeta { api_version: Some(api_version.to_owned()), kind: Some(kind.to_owned()) };
    assert_eq!(unknown.type_meta, Some(wanted));
    // No encoding is named, which means protobuf.
    assert_eq!((unknown.content_encoding.as_deref(), unknown.content_type.as_deref()), (Some(""), Some("")));
    Ok(M::decode(unknown.raw.unwrap_or_default().as_slice())?)
}

/// Encodes an object in its envelope, as another client would.
fn seal(api_version: &str, kind: &str, object: &impl Message) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta { api_version: Some(api_version.to_owned()), kind: Some(kind.to_owned()) }),
        raw: Some(object.encode_to_vec()),
        ..Unknown::default()
    };
    [b"k8s\0".as_slice(), &unknown.encode_to_vec()].concat()
}

/// Decodes a body of the server with the server's own decoder.
fn own(body: &[u8], group: &str, version: &str, kind: &str) -> Result<Value> {
    let schema = Schema::builtin().by_kind(group, version, kind).ok_or("an unknown kind")?;
    let tree = protobuf::decode(body, schema)?.value;
    Ok(serde_json::from_slice(&pintle_machinery::codec::json::encode(&tree, schema))?)
}

fn pod(name: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": "a", "b": ""}}, "spec": {
        "nodeSelector": {"disk": "ssd"}, "terminationGracePeriodSeconds": 7,
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}],
        "containers": [{"name": "c", "image": "example.com/i:1", "args": ["x", "ü"],
            "ports": [{"name": "web", "containerPort": 8080}],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 3}}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_and_lists_are_read_by_another_decoder() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    // No controller creates the default service account of pods here.
    let account = json!({"metadata": {"name": "default"}}).to_string().into_bytes();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    send(&client, "POST", accounts, "application/json", Some(("application/json", account))).await?;
    for name in ["a", "b"] {
        let body = Some(("application/json", serde_json::to_vec(&pod(name))?));
        let created = send(&client, "POST", PODS, PROTOBUF, body).await?;
        assert_eq!(created.status(), 201);
        let pod: Pod = open(&whole(created).await?, "v1", "Pod")?;
        assert_eq!(pod.metadata.unwrap_or_default().name.as_deref(), Some(name));
    }
    let body = whole(send(&client, "GET", &format!("{PODS}/a"), PROTOBUF, None).await?).await?;
    let json = json_of(&client, &format!("{PODS}/a")).await?;
    assert_eq!(own(&body, "", "v1", "Pod")?, json);
    let pod: Pod = open(&body, "v1", "Pod")?;
    let metadata = pod.metadata.unwrap_or_default();
    assert_eq!(metadata.uid.as_deref(), json["metadata"]["uid"].as_str());
    assert_eq!(metadata.resource_version.as_deref(), json["metadata"]["resourceVersion"].as_str());
    assert_eq!(metadata.labels.len(), 2);
    assert_eq!(metadata.managed_fields.len(), 1);
    let spec = pod.spec.unwrap_or_default();
    assert_eq!(spec.termination_grace_period_seconds, Some(7));
    assert_eq!(spec.node_selector.get("disk").map(String::as_str), Some("ssd"));
    assert_eq!(spec.tolerations.len(), 3, "with the two that admission adds");
    let container = spec.containers.first().ok_or("no container")?;
    assert_eq!(container.args, ["x", "ü"]);
    assert_eq!(container.ports.first().and_then(|port| port.container_port), Some(8080));
    let requests = container.resources.clone().unwrap_or_default().requests;
    assert_eq!(requests.get("cpu").and_then(|cpu| cpu.string.as_deref()), Some("100m"));
    let probe = container.liveness_probe.clone().unwrap_or_default();
    assert_eq!(probe.period_seconds, Some(3));
    let port = probe.handler.unwrap_or_default().http_get.unwrap_or_default().port.unwrap_or_default();
    assert_eq!((port.r#type, port.str_val.as_deref()), (Some(1), Some("web")));

    let body = whole(send(&client, "GET", PODS, PROTOBUF, None).await?).await?;
    assert_eq!(own(&body, "", "v1", "PodList")?["items"].as_array().map(Vec::len), Some(2));
    let list: PodList = open(&body, "v1", "PodList")?;
    assert!(list.metadata.unwrap_or_default().resource_version.is_some());
    let names: Vec<_> = list.items.iter().filter_map(|pod| pod.metadata.clone()?.name).collect();
    assert_eq!(names, ["a", "b"]);

    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "strategy": {"rollingUpdate": {"maxSurge": "20%", "maxUnavailable": 2}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let body = Some(("application/json", serde_json::to_vec(&deployment)?));
    let created = whole(send(&client, "POST", DEPLOYMENTS, PROTOBUF, body).await?).await?;
    let deployment: Deployment = open(&created, "apps/v1", "Deployment")?;
    let spec = deployment.spec.unwrap_or_default();
    assert_eq!(spec.replicas, Some(1));
    let rolling = spec.strategy.unwrap_or_default().rolling_update.unwrap_or_default();
    let (surge, unavailable) =
        (rolling.max_surge.unwrap_or_default(), rolling.max_unavailable.unwrap_or_default());
    assert_eq!((surge.r#type, surge.str_val.as_deref()), (Some(1), Some("20%")));
    assert_eq!((unavailable.r#type, unavailable.int_val), (Some(0), Some(2)));

    let missing = send(&client, "GET", &format!("{MAPS}/none"), PROTOBUF, None).await?;
    assert_eq!(missing.status(), 404);
    let status: Status = open(&whole(missing).await?, "v1", "Status")?;
    assert_eq!((status.code, status.reason.as_deref()), (Some(404), Some("NotFound")));
    assert_eq!(status.details.unwrap_or_default().name.as_deref(), Some("none"));
    drop(server);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_encoder_writes_is_taken() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    let mut map = ConfigMap::default();
    map.metadata.get_or_insert_default().name = Some("m".to_owned());
    map.data.insert("k".to_owned(), "v".to_owned());
    map.binary_data.insert("b".to_owned(), vec![0, 255]);
    let body = Some((PROTOBUF, seal("v1", "ConfigMap", &map)));
    let created = send(&client, "POST", MAPS, "application/json", body).await?;
    assert_eq!(created.status(), 201);
    let created: Value = serde_json::from_slice(&whole(created).await?)?;
    assert_eq!((&created["data"], &created["binaryData"]), (&json!({"k": "v"}), &json!({"b": "AP8="})));
    map.metadata.get_or_insert_default().resource_version =
        created["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    map.data.insert("k".to_owned(), "w".to_owned());
    let body = Some((PROTOBUF, seal("v1", "ConfigMap", &map)));
    let replaced = send(&client, "PUT", &format!("{MAPS}/m"), PROTOBUF, body).await?;
    assert_eq!(replaced.status(), 200);
    let replaced: ConfigMap = open(&whole(replaced).await?, "v1", "ConfigMap")?;
    assert_eq!(replaced.data.get("k").map(String::as_str), Some("w"));
    assert_eq!(replaced.binary_data.get("b").map(Vec::as_slice), Some([0, 255].as_slice()));
    let list: ConfigMapList =
        open(&whole(send(&client, "GET", MAPS, PROTOBUF, None).await?).await?, "v1", "ConfigMapList")?;
    assert!(list.items.iter().any(|item| item.data == replaced.data));
    drop(server);
    Ok(())
}

/// The frames of a watch: each has its length in four bytes, then an event without an envelope.
struct Frames<S> {
    body: S,
    read: Vec<u8>,
}

impl<S> Frames<S>
where
    S: futures_util::Stream<Item = std::result::Result<http_body::Frame<bytes::Bytes>, kube::Error>> + Unpin,
{
    async fn next(&mut self) -> Result<(String, Vec<u8>)> {
        loop {
            if let Some((length, rest)) = self.read.split_first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*length))?;
                if let Some(frame) = rest.get(..length) {
                    let event = WatchEvent::decode(frame)?;
                    self.read.drain(..length + 4);
                    let object = event.object.ok_or("an event without an object")?.raw.unwrap_or_default();
                    return Ok((event.r#type.unwrap_or_default(), object));
                }
            }
            let frame = timeout(PATIENCE, self.body.try_next()).await??.ok_or("the watch has ended")?;
            self.read.extend_from_slice(frame.data_ref().map(|data| data.as_ref()).unwrap_or_default());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_are_frames_of_bare_events() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    let post = |name: &str| {
        let body = json!({"metadata": {"name": name, "labels": {"w": "1"}}, "data": {"k": "x".repeat(300)}});
        Some(("application/json", body.to_string().into_bytes()))
    };
    send(&client, "POST", MAPS, "application/json", post("a")).await?;
    let path = format!(
        "{MAPS}?watch=1&labelSelector=w&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let response = send(&client, "GET", &path, &format!("{PROTOBUF};stream=watch"), None).await?;
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    assert_eq!(content_type, Some("application/vnd.kubernetes.protobuf;stream=watch"));
    let mut frames = Frames { body: BodyStream::new(response.into_body()), read: Vec::new() };
    let map = |object: &[u8]| open::<ConfigMap>(object, "v1", "ConfigMap");
    let name = |map: &ConfigMap| map.metadata.clone().unwrap_or_default().name.unwrap_or_default();
    let (event, object) = frames.next().await?;
    assert_eq!((event.as_str(), name(&map(&object)?).as_str()), ("ADDED", "a"));
    let (event, object) = frames.next().await?;
    assert_eq!(event, "BOOKMARK");
    let annotations = map(&object)?.metadata.unwrap_or_default().annotations;
    assert_eq!(annotations.get("k8s.io/initial-events-end").map(String::as_str), Some("true"));
    send(&client, "POST", MAPS, "application/json", post("b")).await?;
    send(&client, "DELETE", &format!("{MAPS}/b"), "application/json", None).await?;
    for expected in ["ADDED", "DELETED"] {
        let (event, object) = frames.next().await?;
        let map = map(&object)?;
        assert_eq!((event.as_str(), name(&map).as_str()), (expected, "b"));
        assert_eq!(map.data.get("k").map(String::len), Some(300));
    }
    drop(server);
    Ok(())
}
