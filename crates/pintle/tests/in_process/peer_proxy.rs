//! Tests forwarding to other servers of the cluster, which are played by the test: good ones, and ones that lie, hang or
//! are not where they say.

use crate::{
    harness::{PATIENCE, Server, options},
    peers::Https,
};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming};
use pintle::Options;
use pintle_machinery::{Value, json};
use pintle_storage::Key;
use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// Another server, which serves `things` of one group, and records the requests that reach it.
struct Peer {
    https: Https,
    requests: Arc<Mutex<Vec<String>>>,
}

/// The answer of a peer to a request for discovery or for its resource; `None` is no answer, ever.
type Answer = fn(&str) -> Option<(u16, Vec<u8>)>;

impl Peer {
    async fn start(answer: Answer) -> Peer {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = requests.clone();
        let serve = move |request: Request<Incoming>| {
            let recorded = recorded.clone();
            async move {
                let path = request.uri().path().to_owned();
                recorded.lock().unwrap().push(record(&request));
                let Some((status, body)) = answer(&path) else { return std::future::pending().await };
                let response = Response::builder().status(status).header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
            }
        };
        Peer { https: Https::serve(&["kubernetes.default.svc"], serve).await, requests }
    }

    fn port(&self) -> u16 {
        self.https.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A request with the headers that matter.
fn record(request: &Request<Incoming>) -> String {
    let shown = |name: &str| {
        name.starts_with("x-remote")
            || name.starts_with("x-kube")
            || name == "authorization"
            || name.starts_with("imp")
    };
    let mut headers: Vec<String> = request
        .headers()
        .iter()
        .filter(|(name, _)| shown(name.as_str()))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    format!("{} {} {}", request.method(), request.uri().path_and_query().unwrap(), headers.join(", "))
}

fn document(group: &str, resources: usize) -> Vec<u8> {
    let resource = |index: usize| {
        let name = if index == 0 { "things".to_owned() } else { format!("things{index}") };
        json!({"resource": name, "scope": "Namespaced", "verbs": ["get"], "responseKind": {"kind": "Thing"}})
    };
    let resources: Vec<Value> = (0..resources).map(resource).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": [{"metadata": {"name": group}, "versions": [
            {"version": "v1", "freshness": "Current", "resources": resources},
        ]}],
    });
    list.to_string().into_bytes()
}

fn good(path: &str) -> Option<(u16, Vec<u8>)> {
    match path {
        "/api" => Some((200, document("", 0))),
        "/apis" => Some((200, document("good.example.com", 1))),
        path => Some((207, format!("the answer of {path}").into_bytes())),
    }
}

/// A server that trusts these peers; it is on the same machine as they are.
async fn start(peers: &[&Peer], change: impl FnOnce(&mut Options)) -> Server {
    let authorities: String = peers.iter().map(|peer| peer.https.ca.as_str()).collect();
    let server = Server::start_with(|options| {
        let path = options.data_dir.join("peers.pem");
        std::fs::write(&path, &authorities).unwrap();
        options.peers.ca_file = Some(path);
        options.advertise_address = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        change(options);
    });
    server.await
}

/// Writes the leases of a server of this identity at this port.
async fn introduce(server: &Server, id: &str, ip: &str, port: u16) {
    let lease = json!({
        "kind": "Endpoints", "apiVersion": "v1", "metadata": {"labels": {"apiserverIdentity": id}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    });
    let key = Key::new(format!("/registry/peerserverleases/{id}"));
    server.storage().create(&key, lease.to_string().into(), None).await.unwrap();
    identify(server, id, "one").await;
}

async fn identify(server: &Server, id: &str, holder: &str) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": id, "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
        "spec": {"holderIdentity": holder},
    });
    let answer = server.send(&format!("POST {LEASES}\n\n{lease}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Waits until a metric with these labels has at least this value.
async fn until(server: &Server, metric: &str, at_least: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = server.send("GET /metrics").await;
        let line = answer.text().lines().find(|line| line.starts_with(metric));
        let value = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).unwrap_or_default();
        if value >= at_least {
            return;
        }
        assert!(Instant::now() < deadline, "{metric} is {value}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a GET has this status.
async fn until_status(server: &Server, path: &str, status: u16) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = server.send(&format!("GET {path}")).await;
        if answer.status == status {
            return answer.text().to_owned();
        }
        assert!(Instant::now() < deadline, "{path}: {} {}", answer.status, answer.text());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const GOOD: &str = "/apis/good.example.com/v1/namespaces/n/things";

#[tokio::test(flavor = "multi_thread")]
async fn requests_reach_the_peer_with_the_user_and_the_mark() {
    let peer = Peer::start(good).await;
    let server = start(&[&peer], |_| {}).await;
    introduce(&server, "apiserver-good", "127.0.0.1", peer.port()).await;
    let answer = until_status(&server, GOOD, 207).await;
    assert_eq!(answer, format!("the answer of {GOOD}"));
    let user = "x-remote-group: system:authenticated, x-remote-uid: system:apiserver, x-remote-user: system:apiserver";
    let requests = peer.requests();
    assert_eq!(requests[0], format!("GET /api x-kubernetes-peer-proxied: true, {user}"));
    assert_eq!(requests[1], format!("GET /apis x-kubernetes-peer-proxied: true, {user}"));

    let sent = server
        .send(&format!(
            "PUT {GOOD}/a?b=c\nConnection: X-Remote-User, x-remote-group, X-Kubernetes-Peer-Proxied\n\
             X-Remote-User: evil\nX-Remote-Extra-Evil: evil\nImpersonate-User: jane\n\
             Impersonate-Group: system:masters\n\n{{}}"
        ))
        .await;
    assert_eq!(sent.status, 207);
    assert_eq!(
        peer.requests().last().unwrap(),
        &format!(
            "PUT {GOOD}/a?b=c x-kubernetes-peer-proxied: true, x-remote-group: system:authenticated, x-remote-group: \
             system:masters, x-remote-user: jane"
        )
    );
    let count = peer.requests().len();
    // A loop ends here: the request has been forwarded already.
    let looping = server.send(&format!("GET {GOOD}\nX-Kubernetes-Peer-Proxied: true")).await;
    assert_eq!(looping.status, 404);
    // Resources that no server has, paths of no resource, and resources of this server.
    for (path, status) in [
        ("/apis/good.example.com/v2/namespaces/n/things", 404),
        ("/apis/good.example.com/v1/namespaces/n/others", 404),
        ("/apis/good.example.com/v1", 404),
        ("/apis/good.example.com", 404),
        ("/api/v1/namespaces/default", 200),
    ] {
        assert_eq!(server.send(&format!("GET {path}")).await.status, status, "{path}");
    }
    assert_eq!(peer.requests().len(), count);
    let rerouted = "apiserver_rerouted_request_total{code=\"207\",group=\"good.example.com\",resource=\"things\",version=\"v1\"}";
    until(&server, rerouted, 2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_lists_the_groups_of_peers() {
    const ACCEPT: &str = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let peer = Peer::start(good).await;
    let server = start(&[&peer], |_| {}).await;
    let before = server.send(&format!("GET /apis\n{ACCEPT}")).await;
    introduce(&server, "apiserver-good", "127.0.0.1", peer.port()).await;
    until_status(&server, GOOD, 207).await;
    let after = server.send(&format!("GET /apis\n{ACCEPT}")).await;
    assert_ne!(before.header("etag"), after.header("etag"));
    let groups = after.json()["items"].as_array().unwrap().clone();
    let group = groups.iter().find(|group| group["metadata"]["name"] == "good.example.com").unwrap();
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "things");
    assert_eq!(group["versions"][0]["freshness"], "Current");
    let cached = server.send(&format!("GET /apis\n{ACCEPT}")).await;
    assert_eq!(cached.body, after.body);
    let unchanged =
        server.send(&format!("GET /apis\n{ACCEPT}\nIf-None-Match: {}", after.header("etag"))).await;
    assert_eq!(unchanged.status, 304);
    let alone = server.send(&format!("GET /apis\n{ACCEPT};profile=nopeer")).await;
    assert_eq!(alone.body, before.body);
    assert_eq!(alone.header("content-type"), before.header("content-type"));
    until(&server, "aggregator_discovery_nopeer_requests_total", 1).await;
    until(&server, "aggregator_discovery_peer_aggregated_cache_hits_total", 2).await;
    until(&server, "aggregator_discovery_peer_aggregated_cache_misses_total", 2).await;
    // A definition takes the group and version: from then on every server serves it itself, or none.
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "others.good.example.com"},
        "spec": {"group": "good.example.com", "scope": "Cluster", "names": {"plural": "others", "kind": "Other"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.send(&format!("POST {path}\n\n{definition}")).await.status, 201);
    until_status(&server, GOOD, 404).await;
    // And for a while after its deletion, until the peers have noticed.
    assert_eq!(server.send(&format!("DELETE {path}/others.good.example.com")).await.status, 200);
    until_status(&server, "/apis/good.example.com/v1/others", 404).await;
    assert_eq!(server.send(&format!("GET {GOOD}")).await.status, 404);
    // The peer leaves.
    assert_eq!(server.send(&format!("DELETE {LEASES}/apiserver-good")).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_lie_are_refused_and_delay_no_other() {
    fn bad(path: &str, body: Vec<u8>) -> Option<(u16, Vec<u8>)> {
        match path {
            "/api" => Some((200, document("", 0))),
            _ => Some((200, body)),
        }
    }
    let liars: [Answer; 8] = [
        // No answer.
        |_| None,
        // No whole answer: the first document, and then nothing.
        |path| (path == "/api").then(|| (200, document("", 0))),
        |path| bad(path, b"junk".to_vec()),
        |path| bad(path, [b"[".repeat(100_000), b"]".repeat(100_000)].concat()),
        // Larger than any document may be.
        |path| bad(path, [document("bad.example.com", 1), b" ".repeat(5 << 20)].concat()),
        |path| bad(path, document("bad.example.com", 10_001)),
        |path| bad(path, br#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#.to_vec()),
        |_| Some((500, document("bad.example.com", 1))),
    ];
    let mut peers = Vec::new();
    for liar in liars {
        peers.push(Peer::start(liar).await);
    }
    let good = Peer::start(good).await;
    let all: Vec<&Peer> = peers.iter().chain([&good]).collect();
    let server = start(&all, |_| {}).await;
    for (index, peer) in peers.iter().enumerate() {
        introduce(&server, &format!("apiserver-{index}"), "127.0.0.1", peer.port()).await;
    }
    introduce(&server, "apiserver-good", "127.0.0.1", good.port()).await;
    until_status(&server, GOOD, 207).await;
    until(&server, "apiserver_peer_discovery_sync_errors_total{type=\"fetch_discovery\"}", 8).await;
    let bad = "/apis/bad.example.com/v1/namespaces/n/things";
    assert_eq!(server.send(&format!("GET {bad}")).await.status, 404);
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_hangs_costs_a_request_no_more_than_its_time() {
    let peer = Peer::start(|path| if path.starts_with("/apis/") { None } else { good(path) }).await;
    let server = start(&[&peer], |options| options.request_timeout = Duration::from_secs(1)).await;
    introduce(&server, "apiserver-good", "127.0.0.1", peer.port()).await;
    let answer = until_status(&server, GOOD, 504).await;
    assert!(answer.contains("Timeout"), "{answer}");
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_direct_requests_to_no_address_but_that_of_another_server() {
    let peer = Peer::start(good).await;
    // The server is reached from other machines, so that nobody else is at a loopback address.
    let elsewhere = IpAddr::V4(Ipv4Addr::new(10, 20, 30, 40));
    let server = start(&[&peer], |options| options.advertise_address = Some(elsewhere)).await;
    introduce(&server, "apiserver-near", "127.0.0.1", peer.port()).await;
    introduce(&server, "apiserver-metadata", "169.254.169.254", peer.port()).await;
    introduce(&server, "apiserver-self", "10.20.30.40", server.address().port()).await;
    introduce(&server, "apiserver-name", "localhost", peer.port()).await;
    identify(&server, "apiserver-homeless", "one").await;
    until(&server, "apiserver_peer_discovery_sync_errors_total{type=\"hostport_resolution\"}", 5).await;
    assert_eq!(server.send(&format!("GET {GOOD}")).await.status, 404);
    assert!(peer.requests().is_empty(), "{:?}", peer.requests());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_without_an_address_any_more_cannot_be_reached() {
    let peer = Peer::start(good).await;
    let server = start(&[&peer], |_| {}).await;
    introduce(&server, "apiserver-good", "127.0.0.1", peer.port()).await;
    until_status(&server, GOOD, 207).await;
    let (storage, key) = (server.storage(), Key::new("/registry/peerserverleases/apiserver-good"));
    let lease = storage.get(&key).await.unwrap().kv.unwrap();
    storage.delete(&key, lease.mod_revision).await.unwrap();
    let answer = server.send(&format!("GET {GOOD}")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Error getting ip and port info of the remote server while proxying",
            "reason": "ServiceUnavailable", "code": 503
        })
    );
    until(&server, "apiserver_peer_proxy_errors_total{group=\"good.example.com\"", 1).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_with_a_certificate_of_another_authority_is_not_believed() {
    let (peer, other) = (Peer::start(good).await, Peer::start(good).await);
    let server = start(&[&other], |_| {}).await;
    introduce(&server, "apiserver-good", "127.0.0.1", peer.port()).await;
    until(&server, "apiserver_peer_discovery_sync_errors_total{type=\"fetch_discovery\"}", 1).await;
    assert_eq!(server.send(&format!("GET {GOOD}")).await.status, 404);
    assert!(peer.requests().is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_closes_the_proxy() {
    let annotations = async |server: &Server| {
        let leases = server.send(&format!("GET {LEASES}")).await.json();
        leases["items"][0]["metadata"]["annotations"].clone()
    };
    let server = Server::start_with(|options| {
        options.peers.advertise_ip = "192.0.2.7".to_owned();
        options.peers.advertise_port = "7443".to_owned();
    });
    let server = server.await;
    assert_eq!(annotations(&server).await, json!({"kubernetes.io/peer-advertise-address": "192.0.2.7:7443"}));
    let checks = server.send("GET /readyz?verbose").await;
    assert!(
        checks.text().contains("poststarthook/peer-endpoint-reconciler-controller ok"),
        "{}",
        checks.text()
    );
    server.stop().await;
    let close =
        |options: &mut Options| options.features.gates.add("UnknownVersionInteroperabilityProxy=false");
    let server = Server::start_with(close).await;
    assert_eq!(annotations(&server).await, Value::Null);
    let metrics = server.send("GET /metrics").await;
    assert!(!metrics.text().contains("aggregator_discovery_nopeer_requests_total"));
    server.stop().await;

    let dir = tempfile::tempdir().unwrap();
    let mut refused = options(dir.path());
    close(&mut refused);
    refused.peers.ca_file = Some("/ca.pem".into());
    let error = pintle::start(refused).await.err().unwrap().to_string();
    assert_eq!(error, "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on");
}
