//! The test harness: a server in this process, and clients that connect to it over TLS.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle::{Options, Running, StorageBackend};
use pintle_storage::Storage;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    convert::Infallible,
    fmt::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpStream, sync::mpsc, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The timeout of every wait: longer than anything takes here.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running server and an administrator's client.
pub(crate) struct Server {
    running: Option<Running>,
    address: SocketAddr,
    kubeconfig: String,
    client: Client,
    dir: Option<TempDir>,
}

/// The default options of tests: the memory engine, any free port, and no dependence on the machine.
pub(crate) fn options(dir: &Path) -> Options {
    Options {
        data_dir: dir.to_owned(),
        storage_backend: StorageBackend::Memory,
        bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        secure_port: 0,
        advertise_address: Some(IpAddr::V4(Ipv4Addr::new(10, 20, 30, 40))),
        ..Options::default()
    }
}

impl Server {
    /// A server on the memory engine.
    pub(crate) async fn start() -> Server {
        Server::start_with(|_| {}).await
    }

    /// A server with changed options.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path());
        change(&mut options);
        let mut server = Server::start_in(options).await;
        server.dir = Some(dir);
        server
    }

    /// A server whose data directory outlives it.
    pub(crate) async fn start_in(options: Options) -> Server {
        let running = pintle::start(options).await.unwrap();
        let (address, kubeconfig) = (running.address(), running.kubeconfig_text().to_owned());
        let client = Client::connect(address, &kubeconfig, Identity::Admin).await;
        Server { running: Some(running), address, kubeconfig, client, dir: None }
    }

    /// Waits until all health checks pass: API services are registered while the server serves.
    pub(crate) async fn until_ready(&self) {
        let asking = async {
            while self.send("GET /readyz").await.status != 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, asking).await.unwrap();
    }

    /// The data directory of a server that [`Server::start_with`] started.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Another HTTP/2 connection.
    pub(crate) async fn client(&self, identity: Identity) -> Client {
        Client::connect(self.address, &self.kubeconfig, identity).await
    }

    /// A TLS connection without an HTTP client, for malformed HTTP/1.1.
    pub(crate) async fn raw(&self, identity: Identity) -> TlsStream<TcpStream> {
        tls(self.address, &self.kubeconfig, identity, b"http/1.1").await
    }

    /// As [`Server::raw`], for malformed HTTP/2.
    pub(crate) async fn raw_http2(&self, identity: Identity) -> TlsStream<TcpStream> {
        tls(self.address, &self.kubeconfig, identity, b"h2").await
    }

    /// Sends a request as the administrator.
    pub(crate) async fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.client.exchange(method, path, headers, body).await
    }

    /// Sends a request in the notation of [`Transcript`].
    pub(crate) async fn send(&self, request: &str) -> Answer {
        self.client.send(request).await
    }

    /// Opens a watch as the administrator.
    pub(crate) async fn watch(&self, path: &str, headers: &[(&str, &str)]) -> Frames {
        self.client.watch(path, headers).await
    }

    /// Fails unless the server still serves requests.
    pub(crate) async fn assert_lives(&self) {
        let client = self.client(Identity::Admin).await;
        let answer = client.send("GET /api/v1/namespaces/default").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Stops the server.
    pub(crate) async fn stop(mut self) {
        let running = self.running.take().unwrap();
        drop(self.client);
        timeout(PATIENCE, running.stop()).await.unwrap().unwrap();
    }

    /// The storage engine with the stored bytes.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        self.running.as_ref().unwrap().storage().clone()
    }

    /// Takes the running server out, to stop it while clients are connected.
    pub(crate) fn take(&mut self) -> Running {
        self.running.take().unwrap()
    }
}

/// The identity of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The administrator, by certificate.
    Admin,
    /// Anonymous, unless a request has a token.
    Nobody,
}

/// Writes a token file with one user outside `system:masters`, whose token is `plain`.
pub(crate) fn plain_user(options: &mut Options) {
    let path: PathBuf = options.data_dir.join("tokens.csv");
    std::fs::write(&path, "plain,jane,1,\"developers\"\n").unwrap();
    options.token_auth_file = Some(path);
}

async fn tls(
    address: SocketAddr,
    kubeconfig: &str,
    identity: Identity,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let field = |name: &str| {
        let value = kubeconfig.split_once(&format!("{name}: ")).unwrap().1.lines().next().unwrap();
        STANDARD.decode(value).unwrap()
    };
    let mut roots = RootCertStore::empty();
    let ca = field("certificate-authority-data");
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        Identity::Nobody => config.with_no_client_auth(),
        Identity::Admin => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&field("client-certificate-data")).unwrap()],
                PrivateKeyDer::from_pem_slice(&field("client-key-data")).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::from(address.ip());
    timeout(PATIENCE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap().unwrap()
}

type SentBody = BoxBody<Bytes, Infallible>;

/// One HTTP/2 connection; it reconnects when the server has closed it, as the server does after a 401.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    kubeconfig: Arc<str>,
    identity: Identity,
    sender: http2::SendRequest<SentBody>,
}

impl Client {
    async fn connect(address: SocketAddr, kubeconfig: &str, identity: Identity) -> Client {
        let stream = tls(address, kubeconfig, identity, b"h2").await;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = timeout(PATIENCE, handshake).await.unwrap().unwrap();
        tokio::spawn(async move {
            // The requests on a broken connection get the error.
            connection.await.ok();
        });
        Client { address, kubeconfig: kubeconfig.into(), identity, sender }
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: SentBody,
    ) -> Request<SentBody> {
        let mut request = Request::builder().method(method).uri(format!("https://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).unwrap()
    }

    /// Sends a request and returns the head of the response.
    pub(crate) async fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: SentBody,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let request = self.request(method, path, headers, body);
        timeout(PATIENCE, self.sender.clone().send_request(request)).await.unwrap()
    }

    /// Sends a request and returns the whole response.
    pub(crate) async fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let body = body.into();
        let mut response = self.begin(method, path, headers, whole(body.clone())).await;
        while self.identity == Identity::Nobody && response.is_err() {
            let another = Client::connect(self.address, &self.kubeconfig, self.identity).await;
            response = another.begin(method, path, headers, whole(body.clone())).await;
        }
        let response = response.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        Answer::read(response).await
    }

    /// Sends a request in the notation of [`Transcript`].
    pub(crate) async fn send(&self, request: &str) -> Answer {
        let (method, path, headers, body) = parse(request);
        self.exchange(method, path, &headers, body.to_owned()).await
    }

    /// Waits until the server has this number of writes in flight.
    pub(crate) async fn until_in_flight(&self, writes: usize) {
        let gauge = "apiserver_current_inflight_requests{request_kind=\"mutating\"} ";
        let count = format!("{gauge}{writes}\n");
        let asking = async {
            loop {
                let text = self.send("GET /metrics").await.text().to_owned();
                // Without a write so far there is no series.
                if text.contains(&count) || (writes == 0 && !text.contains(gauge)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, asking).await.unwrap();
    }

    /// Opens a watch; fails when the answer is not 200.
    pub(crate) async fn watch(&self, path: &str, headers: &[(&str, &str)]) -> Frames {
        let response = self.begin("GET", path, headers, whole("")).await.unwrap();
        let (parts, body) = response.into_parts();
        let mut frames = Frames { headers: parts.headers, body, buffer: BytesMut::new() };
        if parts.status != 200 {
            let why = frames.next().await;
            panic!("watching {path}: {} {why:?}", parts.status);
        }
        frames
    }
}

/// A body whose frames the test sends one by one.
pub(crate) fn slow_body() -> (mpsc::UnboundedSender<Bytes>, BoxBody<Bytes, Infallible>) {
    let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
    let frames = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), receiver))
    });
    // A boxed body has to be `Sync`, which a receiver behind a lock is.
    (sender, BodyExt::boxed(StreamBody::new(SyncStream(std::sync::Mutex::new(Box::pin(frames))))))
}

/// A stream behind a lock, polled by its owner only.
struct SyncStream<S>(std::sync::Mutex<std::pin::Pin<Box<S>>>);

impl<S: futures_util::Stream> futures_util::Stream for SyncStream<S> {
    type Item = S::Item;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.get_mut().0.get_mut().unwrap().as_mut().poll_next(context)
    }
}

/// A body that is complete at once.
pub(crate) fn whole(body: impl Into<Bytes>) -> SentBody {
    Full::new(body.into()).boxed()
}

/// Parses a request: a line with method and path, header lines, and after an empty line the body.
fn parse(request: &str) -> (&str, &str, Vec<(&str, &str)>, &str) {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next().unwrap().split_once(' ').unwrap();
    let mut headers: Vec<_> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "Content-Type") {
        headers.push(("Content-Type", "application/json"));
    }
    (method, path, headers, body)
}

/// A whole response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn read(response: Response<Incoming>) -> Answer {
        let (parts, body) = response.into_parts();
        let body = timeout(PATIENCE, body.collect()).await.unwrap().unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> pintle_machinery::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// A string in the response's JSON, by JSON pointer.
    pub(crate) fn str_at(&self, pointer: &str) -> String {
        let json = self.json();
        let value = json.pointer(pointer).and_then(pintle_machinery::Value::as_str);
        value.unwrap_or_else(|| panic!("no {pointer} in {json}")).to_owned()
    }

    pub(crate) fn resource_version(&self) -> String {
        self.str_at("/metadata/resourceVersion")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A response that is streamed in lines: a watch.
pub(crate) struct Frames {
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
}

impl Frames {
    /// The next line; `None` at the regular end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(at + 1);
                return Some(String::from_utf8(line.to_vec()).unwrap());
            }
            match timeout(PATIENCE, self.body.frame()).await.unwrap() {
                None if self.buffer.is_empty() => return None,
                None => return Some(String::from_utf8(self.buffer.split().to_vec()).unwrap()),
                Some(frame) => {
                    if let Ok(data) = frame.unwrap().into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// The next line, as JSON.
    pub(crate) async fn event(&mut self) -> pintle_machinery::Value {
        serde_json::from_str(&self.next().await.expect("another event")).unwrap()
    }

    /// The next `count` lines.
    pub(crate) async fn take(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(&self.next().await.expect("another event"));
        }
        text
    }
}

/// Requests and their responses as text, for snapshots.
///
/// A request is written as `METHOD PATH`, header lines, an empty line and a body; a body is JSON unless a header says
/// otherwise.
pub(crate) struct Transcript<'a> {
    client: &'a Client,
    text: String,
}

/// The response headers in a transcript: those that clients depend on.
const SHOWN: [&str; 7] =
    ["content-type", "warning", "etag", "vary", "retry-after", "location", "x-content-type-options"];

impl<'a> Transcript<'a> {
    pub(crate) fn new(server: &'a Server) -> Transcript<'a> {
        Transcript { client: &server.client, text: String::new() }
    }

    /// The same transcript, with another client.
    pub(crate) fn by(self, client: &'a Client) -> Transcript<'a> {
        Transcript { client, ..self }
    }

    /// Sends a request and records request and response.
    pub(crate) async fn run(&mut self, request: &str) -> Answer {
        let answer = self.client.send(request).await;
        for line in request.lines() {
            writeln!(self.text, "> {line}").unwrap();
        }
        self.answer(&answer);
        answer
    }

    /// Sends several requests.
    pub(crate) async fn run_all(&mut self, requests: &[&str]) {
        for request in requests {
            self.run(request).await;
        }
    }

    /// Sends a request whose body is too large or unreadable for a snapshot.
    pub(crate) async fn run_hidden(
        &mut self,
        what: &str,
        request: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let (method, path) = request.split_once(' ').unwrap();
        let answer = self.client.exchange(method, path, headers, body).await;
        writeln!(self.text, "> {request}\n> ({what})").unwrap();
        self.answer(&answer);
        answer
    }

    fn answer(&mut self, answer: &Answer) {
        writeln!(self.text, "{}", answer.status).unwrap();
        for name in SHOWN {
            for value in answer.headers.get_all(name) {
                writeln!(self.text, "{name}: {}", value.to_str().unwrap()).unwrap();
            }
        }
        match std::str::from_utf8(&answer.body) {
            Ok(text) if !text.contains('\0') => self.write(text),
            _ => {
                let hex: String = answer.body.iter().map(|byte| format!("{byte:02x}")).collect();
                self.write(&hex);
            }
        }
    }

    /// Adds further text to the transcript.
    pub(crate) fn write(&mut self, text: &str) {
        self.text.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.text.push_str("(no newline)\n");
        }
        self.text.push('\n');
    }
}

impl std::fmt::Display for Transcript<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Compares with the snapshot; values that differ between runs are replaced by placeholders.
macro_rules! assert_transcript {
    ($value:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(true);
        for (pattern, replacement) in $crate::harness::FILTERS {
            settings.add_filter(pattern, *replacement);
        }
        settings.bind(|| insta::assert_snapshot!($value.to_string()));
    }};
}
pub(crate) use assert_transcript;

pub(crate) const FILTERS: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uid]"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "[micro time]"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]"),
    (r#"("?resourceVersion"?: ?")\d+""#, r#"$1[rv]""#),
    (r#"("?continue"?: ?")[A-Za-z0-9_=-]+""#, r#"$1[token]""#),
    (r"current: \d+", "current: [rv]"),
    (r"(ResourceVersion in \w+) ?\(\d+\)", "$1 ([rv])"),
    (r"resourceVersion=\d+", "resourceVersion=[rv]"),
    (r"continue=[A-Za-z0-9_=%-]+", "continue=[token]"),
    (r"(?m)^(etag: ).*$", "$1[hash]"),
    (r#""port":\d{5}"#, r#""port":[port]"#),
    (r#""\d+s""#, r#""[age]""#),
    (r"127\.0\.0\.1:\d+|10\.20\.30\.40:\d+", "[address]"),
];
