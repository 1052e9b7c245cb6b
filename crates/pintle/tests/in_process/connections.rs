//! Tests connections to kubelets, also to such as break the rules.

use crate::{
    harness::{Identity, PATIENCE, Server, plain_user},
    peers::RawHttps,
};
use pintle_machinery::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Mutex, mpsc},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::server::TlsStream;

const POD: &str = "/api/v1/namespaces/default/pods/p";
const LOG: &str = "/api/v1/namespaces/default/pods/p/log";

type Stream = TlsStream<TcpStream>;

/// Creates a node whose kubelet listens on this port, and a pod on it.
async fn create(server: &Server, port: u16) {
    let node = json!({"metadata": {"name": "n"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }});
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let account = json!({"metadata": {"name": "default"}});
    server.send(&format!("POST /api/v1/namespaces/default/serviceaccounts\n\n{account}")).await;
    for (path, object) in [("/api/v1/nodes", node), ("/api/v1/namespaces/default/pods", pod)] {
        let answer = server.send(&format!("POST {path}\n\n{object}")).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

/// A server with a kubelet that answers each connection so.
async fn connected<F>(answer: impl Fn(Stream, String) -> F + Clone + Send + 'static) -> (Server, RawHttps)
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = Server::start_with(plain_user).await;
    let ca = std::fs::read(server.dir().join("certs/ca.crt")).unwrap();
    let kubelet = RawHttps::start(&ca, answer).await;
    create(&server, kubelet.port).await;
    (server, kubelet)
}

/// Reads up to the empty line behind a head.
async fn head_of(stream: &mut Stream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_streams_and_the_kubelet_learns_nothing_of_the_client() {
    let (heads, mut received) = mpsc::unbounded_channel();
    let (next, step) = mpsc::unbounded_channel::<()>();
    let step = Arc::new(Mutex::new(step));
    let (server, _kubelet) = connected(move |mut stream, client| {
        let (heads, step) = (heads.clone(), step.clone());
        async move {
            heads.send((client, head_of(&mut stream).await)).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
            for piece in ["4\r\none\n\r\n", "4\r\ntwo\n\r\n", "0\r\n\r\n"] {
                step.lock().await.recv().await.unwrap();
                stream.write_all(piece.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let secrets = [("cookie", "a=b"), ("x-remote-user", "evil"), ("x-custom", "1")];
    next.send(()).unwrap();
    let mut frames = server.watch(&format!("{LOG}?follow=true&tailLines=2"), &secrets).await;
    // Each piece arrives before the kubelet sends the next one.
    assert_eq!(frames.next().await.unwrap(), "one\n");
    next.send(()).unwrap();
    assert_eq!(frames.next().await.unwrap(), "two\n");
    next.send(()).unwrap();
    assert_eq!(frames.next().await, None);
    let (client, head) = received.recv().await.unwrap();
    assert_eq!(client, "kube-apiserver-kubelet-client");
    let mut lines: Vec<&str> = head.trim().lines().collect();
    assert_eq!(lines.remove(0), "get /containerlogs/default/p/c?follow=true&taillines=2 http/1.1");
    lines.sort_unstable();
    assert_eq!(lines.remove(0), "accept-encoding: gzip");
    assert!(lines.remove(0).starts_with("host: 127.0.0.1:") && lines.is_empty(), "{head}");
    let metrics = server.send("GET /metrics").await;
    let counted = "kube_apiserver_pod_logs_insecure_backend_total{usage=\"enforce_tls\"} 1";
    assert!(metrics.text().contains(counted));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_that_break_the_rules_end_their_own_requests_alone() {
    // A redirect would lead here, with the certificate of the server.
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/x\r\ncontent-length: 0\r\n\r\n",
        elsewhere.local_addr().unwrap()
    );
    let endless_headers = format!("HTTP/1.1 200 OK\r\n{}", "x-endless: yes\r\n".repeat(100_000));
    let long_error = format!("HTTP/1.1 400 Bad\r\ncontent-length: 9999999\r\n\r\n{}", "e".repeat(200_000));
    let cases: [(&str, Vec<u8>, u16, &str); 8] = [
        ("a redirect", redirect.into(), 500, "redirects forbidden"),
        ("headers without end", endless_headers.into(), 500, "Get "),
        ("silence", Vec::new(), 500, "EOF"),
        ("no HTTP", b"\x00\x01\x02 what?\r\n\r\n".to_vec(), 500, "Get "),
        ("another protocol", b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n".to_vec(), 0, ""),
        ("a long error", long_error.into(), 400, "eeee"),
        (
            "half a body",
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".to_vec(),
            200,
            "only this",
        ),
        ("no gzip", b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nnot packed".to_vec(), 200, ""),
    ];
    let answers: Vec<Vec<u8>> = cases.iter().map(|case| case.1.clone()).collect();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let (server, _kubelet) = connected(move |mut stream, _| {
        let answers = answers.clone();
        async move {
            head_of(&mut stream).await;
            let answer = answers.lock().await.next().unwrap_or_default();
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    for (what, _, status, text) in cases {
        let answer = server.send(&format!("GET {LOG}")).await;
        assert!(status == 0 || answer.status == status, "{what}: {} {}", answer.status, answer.text());
        assert!(status != 0 || answer.status >= 500, "{what}: {}", answer.status);
        assert!(answer.text().contains(text), "{what}: {}", answer.text());
        assert!(answer.body.len() < 110_000, "{what}: {}", answer.body.len());
    }
    assert!(
        timeout(Duration::from_millis(100), elsewhere.accept()).await.is_err(),
        "a redirect was followed"
    );
    server.assert_lives().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_that_hangs_holds_neither_a_request_that_is_gone_nor_the_end_of_the_server() {
    let (events, mut told) = mpsc::unbounded_channel();
    let asked = Arc::new(AtomicUsize::new(0));
    let (server, _kubelet) = connected(move |mut stream, _| {
        let (events, asked) = (events.clone(), asked.clone());
        async move {
            head_of(&mut stream).await;
            if asked.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
                let half = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 100\r\n\r\nit is";
                stream.write_all(half).await.unwrap();
            }
            events.send("asked").unwrap();
            // It never answers, or not to the end, and notices when the server leaves.
            let _ = stream.read(&mut [0; 16]).await;
            events.send("left").unwrap();
        }
    })
    .await;
    let mut client = server.raw(Identity::Admin).await;
    client.write_all(format!("GET {LOG} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some("asked"));
    drop(client);
    assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some("left"));
    // Many of them do not delay other requests, and end with the server.
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = server.raw(Identity::Admin).await;
        client.write_all(format!("GET {LOG} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some("asked"));
        clients.push(client);
    }
    server.assert_lives().await;
    server.stop().await;
    for _ in &clients {
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some("left"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_becomes_a_tunnel_that_ends_with_the_server() {
    let (heads, mut received) = mpsc::unbounded_channel();
    let (server, _kubelet) = connected(move |mut stream, _| {
        let heads = heads.clone();
        async move {
            heads.send(head_of(&mut stream).await).unwrap();
            let switched =
                "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";
            stream.write_all(switched.as_bytes()).await.unwrap();
            let mut buffer = [0; 64];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                stream.write_all(&buffer[..count]).await.unwrap();
            }
        }
    })
    .await;
    let plain = server.send(&format!("POST {POD}/exec?command=ls&stdout=true")).await;
    assert_eq!((plain.status, plain.str_at("/message")), (400, "Upgrade request required".to_owned()));
    let mut client = server.raw(Identity::Admin).await;
    let request = format!(
        "POST {POD}/exec?command=ls&command=-l&stdout=true HTTP/1.1\r\nhost: api.example.com\r\n\
         connection: Upgrade\r\nupgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\
         content-length: 0\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(timeout(PATIENCE, client.read_u8()).await.unwrap().unwrap());
    }
    let answer = String::from_utf8(answer).unwrap().to_lowercase();
    assert!(answer.starts_with("http/1.1 101 ") && answer.contains("upgrade: spdy/3.1"), "{answer}");
    let head = received.recv().await.unwrap();
    assert!(head.starts_with("post /exec/default/p/c?command=ls&command=-l&output=1 http/1.1"), "{head}");
    assert!(head.contains("x-stream-protocol-version: v4.channel.k8s.io"), "{head}");
    assert!(head.contains("host: api.example.com") && head.contains("x-forwarded-for: 127.0.0.1"), "{head}");
    client.write_all(b"frames").await.unwrap();
    let mut echo = [0; 6];
    timeout(PATIENCE, client.read_exact(&mut echo)).await.unwrap().unwrap();
    assert_eq!(&echo, b"frames");
    server.stop().await;
    assert!(!matches!(timeout(PATIENCE, client.read(&mut echo)).await.unwrap(), Ok(1..)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_by_get_needs_the_permission_to_create() {
    let (server, _kubelet) = connected(|_, _| async { panic!("nobody may ask the kubelet") }).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    for (resource, object) in [("roles", role), ("rolebindings", binding)] {
        assert_eq!(server.send(&format!("POST {roles}/{resource}\n\n{object}")).await.status, 201);
    }
    let client = server.client(Identity::Nobody).await;
    let exec = async |pod: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{pod}/exec?command=ls");
        let answer = client.send(&format!("GET {path}\nAuthorization: Bearer plain")).await;
        (answer.status, answer.str_at("/message"))
    };
    let deadline = Instant::now() + PATIENCE;
    // The authorizer learns of the binding a little later.
    while exec("p").await.1.contains("cannot get") {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(5)).await;
    }
    // A pod that is not there gives nothing away.
    for pod in ["p", "none"] {
        assert_eq!(exec(pod).await, (403, format!("pods \"{pod}\" is forbidden: ")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_are_verified_by_the_configured_authority() {
    let answered = |mut stream: Stream, _| async move {
        head_of(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nlog").await.unwrap();
    };
    // The authority of another kubelet.
    let other = crate::peers::Authority::new("kubelets");
    let mut path = std::path::PathBuf::new();
    let server = Server::start_with(|options| {
        path = options.data_dir.join("kubelets.crt");
        std::fs::write(&path, other.pem()).unwrap();
        options.kubelet.certificate_authority = Some(path.clone());
    })
    .await;
    let ca = std::fs::read(server.dir().join("certs/ca.crt")).unwrap();
    let kubelet = RawHttps::start(&ca, answered).await;
    create(&server, kubelet.port).await;
    let refused = server.send(&format!("GET {LOG}")).await;
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of \
                   \"x509: ECDSA verification failure\" while trying to verify candidate authority certificate \"kubelets\")";
    let message = format!("Get \"https://127.0.0.1:{}/containerLogs/default/p/c\": {unknown}", kubelet.port);
    assert_eq!((refused.status, refused.str_at("/message")), (500, message));
    let metrics = server.send("GET /metrics").await;
    assert!(metrics.text().contains("kube_apiserver_pod_logs_backend_tls_failure_total 1"));
    let unverified = server.send(&format!("GET {LOG}?insecureSkipTLSVerifyBackend=true")).await;
    assert_eq!((unverified.status, unverified.text()), (200, "log"));
    // A changed file is in force within seconds.
    std::fs::write(&path, &kubelet.ca).unwrap();
    timeout(PATIENCE, async {
        while server.send(&format!("GET {LOG}")).await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_not_proxied_to_the_server_itself() {
    let (server, kubelet) = connected(|_, _| async { panic!("nobody may ask the kubelet") }).await;
    for name in ["n".to_owned(), format!("https:n:{}", server.address().port()), "n:22".to_owned()] {
        let answer = server.send(&format!("GET /api/v1/nodes/{name}/proxy/metrics")).await;
        assert_eq!((answer.status, answer.str_at("/message")), (400, "address not allowed".to_owned()));
    }
    let status = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}});
    let merge = "Content-Type: application/merge-patch+json";
    assert_eq!(server.send(&format!("PATCH {POD}/status\n{merge}\n\n{status}")).await.status, 200);
    let answer = server.send(&format!("GET {POD}:{}/proxy/", kubelet.port)).await;
    assert_eq!((answer.status, answer.str_at("/message")), (400, "address not allowed".to_owned()));
}
