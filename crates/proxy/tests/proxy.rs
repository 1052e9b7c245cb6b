//! Requests through the proxy, to a real server with TLS in this process.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use pintle_dialer::{Client, Dialer, TlsSettings};
use pintle_proxy::{Failure, Forwarding, Origin, Target, TunnelLife, failure};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Mutex, mpsc, watch},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

const NAME: &str = "backend.test.svc";
const PATIENCE: Duration = Duration::from_secs(20);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server with TLS, whose connections a function handles.
struct Backend {
    address: SocketAddr,
    ca_pem: String,
    connections: Arc<AtomicUsize>,
}

impl Backend {
    async fn start<F>(handle: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static) -> Backend
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counter, handle) = (connections.clone(), Arc::new(handle));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counter, handle) = (acceptor.clone(), counter.clone(), handle.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        counter.fetch_add(1, Ordering::SeqCst);
                        handle(stream).await;
                    }
                });
            }
        });
        Backend { address, ca_pem: certificate.pem(), connections }
    }

    /// A backend that reads a head, writes `answer`, and closes the connection.
    async fn answering(answer: impl Into<String>) -> Backend {
        let answer = Arc::new(answer.into());
        Backend::start(move |mut stream| {
            let answer = answer.clone();
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// A backend that reads a head, writes `answer`, and then does nothing more.
    async fn hanging_after(answer: &'static str) -> Backend {
        Backend::start(move |mut stream| async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            std::future::pending::<()>().await;
        })
        .await
    }

    async fn front(&self) -> Front {
        Front::start(self, None, true).await
    }
}

/// A plain HTTP/1.1 server that forwards everything.
struct Front {
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Front {
    async fn start(backend: &Backend, limit: Option<Duration>, rejects_redirects: bool) -> Front {
        let settings = TlsSettings {
            ca: backend.ca_pem.as_bytes(),
            insecure: false,
            client_certificate: None,
            both_protocols: true,
        };
        let client = Arc::new(Client::new(NAME.to_owned(), &settings, &Dialer::default()).unwrap());
        let authority = backend.address.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((stream, remote)) = listener.accept().await {
                let (client, authority, stopping) = (client.clone(), authority.clone(), stopping.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (client, authority) = (client.clone(), authority.clone());
                    let tunnel = TunnelLife { stopping: Some(stopping.clone()), ..TunnelLife::default() };
                    async move {
                        let forwarding = Forwarding {
                            client: &client,
                            target: Target::of(request.uri(), &authority).unwrap(),
                            origin: Origin::Backend,
                            client_address: Some(remote.ip()),
                            rejects_redirects,
                            limit,
                            tunnel,
                        };
                        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
                        let unavailable =
                            |error: Failure| failure(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
                        let identify = |headers: &mut HeaderMap| {
                            headers.insert("x-remote-user", HeaderValue::from_static("jane"));
                            Ok(())
                        };
                        let answer = forwarding.forward(request, identify).await;
                        Ok::<_, Infallible>(answer.unwrap_or_else(unavailable))
                    }
                });
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection.with_upgrades());
            }
        });
        Front { address, stop }
    }

    async fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Writes a request, and reads until the connection ends.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect(request).await;
        let mut answer = Vec::new();
        // A connection may end with a reset.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection goes on");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a GET, and reads until the connection ends.
    async fn get(&self, path: &str) -> String {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n")).await
    }
}

/// Reads up to the empty line behind a head, byte by byte.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn a_request_arrives_with_the_headers_of_a_proxy() {
    let (heads, mut received) = mpsc::unbounded_channel();
    let backend = Backend::start(move |mut stream| {
        let heads = heads.clone();
        async move {
            heads.send(read_head(&mut stream).await).unwrap();
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    })
    .await;
    // The client cannot name the proxy's own headers as those of its connection.
    let request = "GET /a//b%2Fc?z=1&a=2 HTTP/1.1\r\nhost: front\r\n\
                   connection: close, x-hop, X-Remote-User, x-forwarded-host\r\nx-hop: 1\r\nx-remote-user: evil\r\n\
                   x-stay: 1\r\nx-forwarded-for: 1.2.3.4\r\npragma: no-cache\r\n\r\n";
    let answer = backend.front().await.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nok"), "{answer}");
    let host = backend.address;
    let expected = format!(
        "\nGET /a//b/c?a=2&z=1 HTTP/1.1\naccept-encoding: gzip\ncache-control: no-cache\nhost: {host}\npragma: no-cache\n\
         x-forwarded-for: 1.2.3.4, 127.0.0.1\nx-forwarded-host: {host}\nx-forwarded-proto: https\nx-forwarded-uri: /a/b/c\nx-remote-user: jane\n\
         x-stay: 1"
    );
    let head = received.recv().await.unwrap();
    let mut found: Vec<_> = head.lines().collect();
    found.sort_unstable();
    assert_eq!(found.join("\n"), expected);
}

#[tokio::test]
async fn each_piece_of_a_stream_passes_as_it_comes() {
    let (next, step) = mpsc::unbounded_channel::<()>();
    let step = Arc::new(Mutex::new(step));
    let backend = Backend::start(move |mut stream| {
        let step = step.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
            for piece in ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"] {
                step.lock().await.recv().await.unwrap();
                stream.write_all(piece.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let front = backend.front().await;
    let mut stream = front.connect("GET / HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n").await;
    let head = timeout(PATIENCE, read_head(&mut stream)).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    for expected in ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"] {
        next.send(()).unwrap();
        let mut piece = vec![0; expected.len()];
        timeout(PATIENCE, stream.read_exact(&mut piece)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(piece).unwrap(), expected);
    }
}

/// The most bytes that may be on their way when nobody reads: the buffers of the sockets are the largest part.
const ON_THE_WAY: usize = 30 << 20;

#[tokio::test]
async fn a_backend_that_does_not_read_stops_the_client() {
    let front = Backend::hanging_after("").await.front().await;
    let head = "POST / HTTP/1.1\r\nhost: front\r\ncontent-length: 1000000000\r\n\r\n";
    let mut upload = front.connect(head).await;
    let mut sent = 0;
    while let Ok(written) = timeout(Duration::from_millis(500), upload.write(&[b'x'; 64 << 10])).await {
        sent += written.unwrap();
    }
    assert!(sent < ON_THE_WAY, "{sent}");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_backend_and_ends_it_by_leaving() {
    let (sent, mut progress) = watch::channel((0, false));
    let sent = Arc::new(sent);
    let backend = Backend::start(move |mut stream| {
        let sent = sent.clone();
        async move {
            read_head(&mut stream).await;
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
            stream.write_all(head).await.unwrap();
            while let Ok(written) = stream.write(&[b'x'; 16 << 10]).await {
                sent.send_modify(|(sent, _)| *sent += written);
            }
            sent.send_modify(|(_, is_over)| *is_over = true);
        }
    })
    .await;
    let front = backend.front().await;
    let download = front.connect("GET / HTTP/1.1\r\nhost: front\r\n\r\n").await;
    progress.changed().await.unwrap();
    while timeout(Duration::from_millis(500), progress.changed()).await.is_ok() {}
    let (sent, is_over) = *progress.borrow();
    assert!(sent < ON_THE_WAY && !is_over, "{sent}");
    drop(download);
    timeout(PATIENCE, progress.wait_for(|(_, is_over)| *is_over)).await.expect("it goes on").unwrap();
}

#[tokio::test]
async fn a_body_that_is_cut_short_ends_the_connection() {
    let get = async |answer: String| Backend::answering(answer).await.front().await.get("/").await;
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    assert_eq!(get(short.to_owned()).await, "");
    // A body that is longer than a buffer has begun to arrive.
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(50_000));
    assert!(body_of(&get(long).await).len() <= 50_000);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
    let answer = get(chunked.to_owned()).await;
    assert!(answer.ends_with("\r\n3\r\none\r\n"), "{answer}");
    // The length of the chunks is the only one.
    let two_lengths =
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
    let answer = get(two_lengths.to_owned()).await;
    assert!(!answer.contains("content-length"), "{answer}");
    assert!(answer.ends_with("\r\n3\r\none\r\n0\r\n\r\n"), "{answer}");
    // Without any length, the end of the connection is the end of the body.
    let answer = get("HTTP/1.1 200 OK\r\n\r\nall".to_owned()).await;
    assert!(answer.ends_with("3\r\nall\r\n0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn failures_are_text() {
    let check = async |answer: &str, expected_code: &str, expected: &str| {
        let found = Backend::answering(answer).await.front().await.get("/").await;
        assert!(found.starts_with(&format!("HTTP/1.1 {expected_code}")), "{found}");
        assert!(found.contains("content-type: text/plain; charset=utf-8"), "{found}");
        assert_eq!(body_of(&found), expected, "{answer}");
    };
    check("", "503", "error trying to reach service: EOF\n").await;
    for status in [301, 302, 307, 399] {
        let redirect = format!("HTTP/1.1 {status} x\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n");
        let why = "the backend attempted to redirect this request, which is not permitted";
        check(&redirect, "502", why).await;
    }
    for status in ["200 OK", "302 Found"] {
        check(
            &format!("HTTP/1.1 {status}\r\nlocation: :\r\ncontent-length: 0\r\n\r\n"),
            "503",
            "Internal error occurred: error trying to parse Location header: parse \":\": missing protocol scheme\n",
        )
        .await;
    }
}

#[tokio::test]
async fn lengths_of_bodies_that_are_not_sent_are_not_told() {
    let backend =
        Backend::answering("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\n").await;
    let head = "HEAD / HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n";
    let answer = backend.front().await.exchange(head).await;
    assert!(answer.contains("content-type: text/html"), "{answer}");
    assert!(!answer.contains("content-length"), "{answer}");
    let unchanged = "HTTP/1.1 304 Not Modified\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n";
    let answer = Backend::answering(unchanged).await.front().await.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 304"), "{answer}");
    assert!(!answer.contains("content-"), "{answer}");
}

#[tokio::test]
async fn redirects_pass_if_they_may() {
    let backend =
        Backend::answering("HTTP/1.1 302 Found\r\nlocation: /x?y#z\r\ncontent-length: 0\r\n\r\n").await;
    let answer = Front::start(&backend, None, false).await.get("/").await;
    assert!(answer.contains(&format!("location: https://{}/x?y#z", backend.address)), "{answer}");
    // Without a location it is no redirect.
    let backend = Backend::answering("HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n").await;
    let answer = backend.front().await.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 304"), "{answer}");
}

#[tokio::test]
async fn heads_without_end_and_backends_that_hang_have_limits() {
    let endless = Backend::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"x-more: and more\r\n").await.is_ok() {}
    })
    .await;
    let answer = endless.front().await.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let limit = Some(Duration::from_millis(50));
    let silent = Backend::hanging_after("").await;
    let answer = Front::start(&silent, limit, true).await.get("/").await;
    assert_eq!(body_of(&answer), "error trying to reach service: context deadline exceeded\n");
    let unfinished = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
    let unfinished = Backend::hanging_after(unfinished).await;
    let answer = Front::start(&unfinished, limit, true).await.get("/").await;
    assert!(!answer.contains("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_request_that_may_be_repeated_is_sent_again_when_a_kept_connection_is_closed() {
    // Each connection has one response, and is closed by the second request.
    let backend = Backend::start(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let front = backend.front().await;
    assert!(front.get("/1").await.ends_with("ok"));
    assert!(front.get("/2").await.ends_with("ok"));
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
    let post = "POST /3 HTTP/1.1\r\nhost: front\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx";
    assert_eq!(body_of(&front.exchange(post).await), "error trying to reach service: EOF\n");
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
    // A new connection that is closed at once is not tried again.
    let backend = Backend::answering("").await;
    assert!(backend.front().await.get("/").await.starts_with("HTTP/1.1 503"));
    assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn requests_that_hang_delay_no_other_request() {
    let backend = Backend::start(|mut stream| async move {
        if read_head(&mut stream).await.starts_with("GET /hang") {
            std::future::pending::<()>().await;
        }
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    let front = backend.front().await;
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(front.connect("GET /hang HTTP/1.1\r\nhost: front\r\n\r\n").await);
    }
    assert!(front.get("/").await.ends_with("ok"));
}

const UPGRADE: &str = "GET /echo HTTP/1.1\r\nhost: front\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";

/// A request to upgrade, whose connection ends with the response if it is refused.
fn upgrade_and_close() -> String {
    UPGRADE.replace("connection: Upgrade", "connection: Upgrade, close")
}

#[tokio::test]
async fn an_upgraded_connection_is_a_tunnel() {
    let (heads, mut received) = mpsc::unbounded_channel();
    let backend = Backend::start(move |mut stream| {
        let heads = heads.clone();
        async move {
            heads.send(read_head(&mut stream).await).unwrap();
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\nhello";
            stream.write_all(head.as_bytes()).await.unwrap();
            let (mut from, mut to) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
        }
    })
    .await;
    let front = backend.front().await;
    let mut stream = front.connect(UPGRADE).await;
    let head = timeout(PATIENCE, read_head(&mut stream)).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("upgrade: SPDY/3.1"), "{head}");
    let sent = received.recv().await.unwrap();
    assert!(sent.contains("upgrade: SPDY/3.1") && sent.contains("x-forwarded-for: 127.0.0.1"), "{sent}");
    assert!(!sent.contains("x-forwarded-host"), "{sent}");
    // Many more bytes than the buffers have, in both directions.
    let (mut from, mut to) = stream.into_split();
    let writer = tokio::spawn(async move {
        to.write_all(&vec![b'x'; 4 << 20]).await.unwrap();
        to.shutdown().await.unwrap();
    });
    let mut echoed = Vec::new();
    timeout(PATIENCE, from.read_to_end(&mut echoed)).await.unwrap().unwrap();
    writer.await.unwrap();
    assert_eq!(echoed.len(), 5 + (4 << 20));

    // The server stops: its tunnels end.
    let mut stream = front.connect(UPGRADE).await;
    read_head(&mut stream).await;
    front.stop.send_replace(true);
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the tunnel goes on");
}

#[tokio::test]
async fn an_upgrade_may_be_refused() {
    let check = async |answer: &str, expected_code: &str, expected: &str| {
        let found = Backend::answering(answer).await.front().await.exchange(&upgrade_and_close()).await;
        assert!(found.starts_with(&format!("HTTP/1.1 {expected_code}")), "{found}");
        assert_eq!(body_of(&found), expected);
    };
    check("HTTP/1.1 418 x\r\ncontent-length: 3\r\n\r\nno\n", "418", "no\n").await;
    let redirect = "HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n";
    check(redirect, "503", "invalid upgrade response: status code 302\n").await;
    check("", "503", "unexpected EOF\n").await;
}

#[tokio::test]
async fn a_backend_that_does_not_listen_is_named() {
    let backend = Backend::answering("").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let front = Backend { address, ..backend }.front().await;
    let refused = format!("dial tcp {address}: connect: connection refused\n");
    let answer = front.exchange(&upgrade_and_close()).await;
    assert_eq!(body_of(&answer), format!("error dialing backend: {refused}"));
    assert_eq!(body_of(&front.get("/").await), format!("error trying to reach service: {refused}"));
}

#[tokio::test]
async fn pages_are_rewritten_unless_they_are_too_large() {
    let answer = |body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let backend = Backend::answering(answer("<a href=\"/x\">")).await;
    let found = backend.front().await.get("/").await;
    assert_eq!(body_of(&found), format!("<a href=\"https://{}/x\">", backend.address));
    let page = "<a href=\"/x\">".repeat(300_000);
    let found = Backend::answering(answer(&page)).await.front().await.get("/").await;
    assert!(body_of(&found) == page, "{} bytes", body_of(&found).len());
}
