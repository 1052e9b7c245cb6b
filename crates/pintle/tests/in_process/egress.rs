//! Tests that the server reaches networks through the proxies of its egress selector configuration.

use crate::{
    harness::{PATIENCE, Server, options},
    peers::{Https, Peer},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_machinery::{Value, json};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixListener},
};

/// A `CONNECT` proxy on a Unix socket. It alone knows the addresses of its network.
#[derive(Clone, Default)]
struct Network {
    addresses: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Network {
    fn start(socket: &Path) -> Network {
        let network = Network::default();
        let (serving, listener) = (network.clone(), UnixListener::bind(socket).unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let network = serving.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    let head = String::from_utf8(head).unwrap();
                    let asked = head.split(' ').nth(1).unwrap().to_owned();
                    network.asked.lock().unwrap().push(asked.clone());
                    let address = network.addresses.lock().unwrap().get(&asked).cloned();
                    let Some(address) = address else {
                        stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await.unwrap();
                        return;
                    };
                    let mut backend = TcpStream::connect(address).await.unwrap();
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    // The connection may end in any way.
                    copy_bidirectional(&mut stream, &mut backend).await.ok();
                });
            }
        });
        network
    }

    fn add(&self, address: &str, https: &Https) {
        let local = https.url.trim_start_matches("https://").to_owned();
        self.addresses.lock().unwrap().insert(address.to_owned(), local);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Writes a configuration whose networks are behind these sockets.
fn configuration(directory: &Path, selections: &[(&str, &Path)]) -> PathBuf {
    let mut text =
        "kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/v1beta1\negressSelections:\n"
            .to_owned();
    for (name, socket) in selections {
        let uds = format!("{{uds: {{udsName: {}}}}}", socket.display());
        text +=
            &format!("- {{name: {name}, connection: {{proxyProtocol: HTTPConnect, transport: {uds}}}}}\n");
    }
    let path = directory.join("egress.yaml");
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_are_reached_through_their_proxies() {
    let sockets = tempfile::tempdir().unwrap();
    let (first, second) = (sockets.path().join("control-plane"), sockets.path().join("cluster"));
    let (control_plane, cluster) = (Network::start(&first), Network::start(&second));
    let tokens = Https::named(
        &["tokens.example"],
        Arc::new(|_, _, _| {
            let status = json!({"authenticated": true, "user": {"username": "jane"}});
            let review =
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status});
            (200, review.to_string())
        }),
    )
    .await;
    control_plane.add("tokens.example:8443", &tokens);
    let server = Server::start_with(|options| {
        let ca = STANDARD.encode(&tokens.ca);
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\nclusters: [{{name: k, cluster: {{server: 'https://tokens.example:8443/', \
             certificate-authority-data: {ca}}}}}]\n"
        );
        let path = options.data_dir.join("webhook.yaml");
        fs::write(&path, kubeconfig).unwrap();
        options.authentication.webhook.config_file = Some(path);
        options.authentication.webhook.version = "v1".parse().unwrap();
        options.egress_selector_config_file =
            Some(configuration(&options.data_dir, &[("controlplane", &first), ("cluster", &second)]));
    })
    .await;
    let headers = "Authorization: Bearer good\r\n";
    assert_eq!(Peer::default().who(server.address(), headers).await.as_deref(), Some("jane"));
    assert_eq!(control_plane.asked(), ["tokens.example:8443"]);

    let extension = Https::named(
        &["extension.default.svc"],
        Arc::new(|_, path, _| {
            let list =
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": path, "resources": []});
            (200, list.to_string())
        }),
    )
    .await;
    let service = json!({"metadata": {"name": "extension"}, "spec": {"ports": [{"port": 443}]}});
    let service = server.send(&format!("POST /api/v1/namespaces/default/services\n\n{service}")).await.json();
    let address = format!("{}:443", service["spec"]["clusterIP"].as_str().unwrap());
    cluster.add(&address, &extension);
    let slice = json!({"metadata": {"name": "extension", "labels": {"kubernetes.io/service-name": "extension"}},
        "addressType": "IPv4", "ports": [{"port": 443}], "endpoints": [{"addresses": ["10.99.0.9"], "conditions": {"ready": true}}]});
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(server.send(&format!("POST {slices}\n\n{slice}")).await.status, 201);
    let api_service = json!({"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com", "version": "v1",
        "groupPriorityMinimum": 1, "versionPriority": 1, "caBundle": STANDARD.encode(&extension.ca),
        "service": {"namespace": "default", "name": "extension"}}});
    let api_services = "/apis/apiregistration.k8s.io/v1/apiservices";
    assert_eq!(server.send(&format!("POST {api_services}\n\n{api_service}")).await.status, 201);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = server.send("GET /apis/example.com/v1").await;
        if answer.status == 200 {
            assert_eq!(answer.json()["groupVersion"], "/apis/example.com/v1");
            break;
        }
        assert!(Instant::now() < deadline, "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(cluster.asked().iter().all(|asked| *asked == address), "{:?}", cluster.asked());
    assert_eq!(control_plane.asked().len(), 1);
    let metrics = server.send("GET /metrics").await;
    let counted = "apiserver_egress_dialer_dial_start_total{protocol=\"http_connect\",transport=\"uds\"}";
    assert!(metrics.text().contains(counted), "{counted}");

    // A webhook at a URL is in the network of the control plane, one behind a service in that of the cluster.
    let review = Https::named(
        &["hook.example", "hook.default.svc"],
        Arc::new(|_, _, review: Value| {
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let kind =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (200, kind.to_string())
        }),
    )
    .await;
    control_plane.add("hook.example:443", &review);
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}});
    let service = server.send(&format!("POST /api/v1/namespaces/default/services\n\n{service}")).await.json();
    let hook_address = format!("{}:443", service["spec"]["clusterIP"].as_str().unwrap());
    cluster.add(&hook_address, &review);
    let hook = |name: &str, mut config: Value| {
        config["caBundle"] = STANDARD.encode(&review.ca).into();
        json!({"name": name, "clientConfig": config, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]})
    };
    let hooks = json!({"metadata": {"name": "hooks"}, "webhooks": [
        hook("url.example.com", json!({"url": "https://hook.example/"})),
        hook("service.example.com", json!({"service": {"namespace": "default", "name": "hook"}})),
    ]});
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(server.send(&format!("POST {configurations}\n\n{hooks}")).await.status, 201);
    let object = json!({"metadata": {"name": "a"}});
    let answer = server.send(&format!("POST /api/v1/namespaces/default/configmaps\n\n{object}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(control_plane.asked().contains(&"hook.example:443".to_owned()));
    assert!(cluster.asked().contains(&hook_address));

    // Nodes are in the network of the cluster. Without an authority of kubelets, any certificate is accepted.
    cluster.add("10.99.0.9:10250", &extension);
    let node = json!({"metadata": {"name": "a"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.99.0.9"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}});
    assert_eq!(server.send(&format!("POST /api/v1/nodes\n\n{node}")).await.status, 201);
    let answer = server.send("GET /api/v1/nodes/a/proxy/stats").await;
    assert_eq!(
        (answer.status, answer.json()["groupVersion"].as_str()),
        (200, Some("/stats")),
        "{}",
        answer.text()
    );
    assert!(cluster.asked().contains(&"10.99.0.9:10250".to_owned()));

    // The proxy's refusal is the reason that clients get.
    cluster.addresses.lock().unwrap().remove(&hook_address);
    let patch = json!({"webhooks": [hook("other.example.com", json!({"service": {"namespace": "default", "name": "hook",
        "path": "/other"}}))]});
    let merge = "Content-Type: application/merge-patch+json";
    assert_eq!(server.send(&format!("PATCH {configurations}/hooks\n{merge}\n\n{patch}")).await.status, 200);
    let object = json!({"metadata": {"name": "b"}});
    let answer = server.send(&format!("POST /api/v1/namespaces/default/configmaps\n\n{object}")).await;
    let why = format!("while dialing {hook_address}, code 502: 502 Bad Gateway");
    assert!(answer.status == 500 && answer.text().contains(&why), "{}", answer.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_configuration_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let check = async |path: PathBuf, expected: &str| {
        let mut options = options(directory.path());
        options.egress_selector_config_file = Some(path);
        let error = pintle::start(options).await.err().unwrap().to_string();
        assert_eq!(error, expected);
    };
    check(
        "/no/such/file".into(),
        "failed to read egress selector config: unable to read egress selector configuration from \"/no/such/file\" [open \
         /no/such/file: no such file or directory]",
    )
    .await;
    let socket = directory.path().join("socket");
    check(
        configuration(directory.path(), &[("nodes", &socket)]),
        "failed to validate egress selector configuration: service.connection: Unsupported value: \"nodes\": supported \
         values: \"cluster\", \"controlplane\", \"etcd\"",
    )
    .await;
}
