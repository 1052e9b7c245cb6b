//! An extension API server that sends much and computes little, for the measurement of what a proxy costs.

use crate::{ADDRESSES, Error, Server, wait_for};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::Duration,
};

/// An extension API server behind an API service of a server, on threads of this process, until the process ends. It has
/// to run in a network of its own ([`crate::in_own_network`]), the server with `--enable-aggregator-routing`.
pub struct BulkServer;

/// The port of the first server; each further one has the next.
static PORT: AtomicU16 = AtomicU16::new(28444);
const NAMESPACE: &str = "bulk";
const GROUP_VERSION: &str = "/apis/bulk.example.com/v1";
const PATIENCE: Duration = Duration::from_secs(60);

impl BulkServer {
    /// The pause between two events, so that each one is sent alone.
    pub const EVENT_PAUSE: Duration = Duration::from_micros(300);

    /// Starts the extension API server, registers it with `server`, and waits until it is available.
    ///
    /// # Errors
    /// When it does not become available.
    pub fn start(server: &Server) -> Result<BulkServer, Error> {
        let key = KeyPair::generate()?;
        let name = format!("{NAMESPACE}.{NAMESPACE}.svc");
        let certificate = CertificateParams::new([name])?.self_signed(&key)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let [address, ..] = ADDRESSES;
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let listener = TcpListener::bind((address, port))?;
        let tls = Arc::new(tls);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let tls = tls.clone();
                // A connection ends with an error when its client closes it.
                thread::spawn(move || serve(socket, tls).ok());
            }
        });
        register(server, (address, port), &certificate.pem())?;
        wait_for("the extension API server", PATIENCE, || {
            let response = server.client().and_then(|client| client.get(GROUP_VERSION)).ok()?;
            (response.status == 200).then_some(())
        })?;
        Ok(BulkServer)
    }

    /// The path of a response of this many bytes.
    pub fn bytes(count: u64) -> String {
        format!("{GROUP_VERSION}/bytes/{count}")
    }

    /// The path of a watch with this many events.
    pub fn events(count: u64) -> String {
        format!("{GROUP_VERSION}/events/{count}?watch=true")
    }
}

/// Creates the service, its endpoints and the API service.
fn register(server: &Server, (address, port): (&str, u16), authority: &str) -> Result<(), Error> {
    let client = server.client()?;
    let create = |path: &str, object: Value| -> Result<(), Error> {
        let response = client.post(path, &object)?;
        match response.status {
            201 => Ok(()),
            status => Err(format!("POST {path}: {status} {}", response.text()).into()),
        }
    };
    create("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}}))?;
    create(
        &format!("/api/v1/namespaces/{NAMESPACE}/services"),
        json!({"metadata": {"name": NAMESPACE},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}}),
    )?;
    create(
        &format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
        json!({"metadata": {"name": "bulk-1", "labels": {"kubernetes.io/service-name": NAMESPACE}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "https", "port": port}]}),
    )?;
    create(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        json!({"metadata": {"name": "v1.bulk.example.com"},
            "spec": {"group": "bulk.example.com", "version": "v1", "groupPriorityMinimum": 1000,
                "versionPriority": 10, "caBundle": STANDARD.encode(authority),
                "service": {"namespace": NAMESPACE, "name": NAMESPACE}}}),
    )
}

fn serve(socket: TcpStream, tls: Arc<ServerConfig>) -> Result<(), Error> {
    socket.set_nodelay(true)?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(tls)?, socket));
    let piece = [b'x'; 16 << 10];
    loop {
        let mut path = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
        }
        let out = stream.get_mut();
        let path = path.split('?').next().unwrap_or_default();
        match path.strip_prefix(GROUP_VERSION).map(|rest| rest.split('/').collect::<Vec<_>>()).as_deref() {
            Some(["", "bytes", count]) => {
                let mut rest: usize = count.parse()?;
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {rest}\r\n\r\n"
                )?;
                while let Some(next) = piece.get(..rest.min(piece.len())).filter(|next| !next.is_empty()) {
                    out.write_all(next)?;
                    rest -= next.len();
                }
            }
            Some(["", "events", count]) => {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                out.write_all(head.as_bytes())?;
                let event = json!({"type": "MODIFIED", "object": {"metadata": {"name": "x".repeat(900)}}});
                let event = format!("{event}\n");
                let event = format!("{:x}\r\n{event}\r\n", event.len());
                for _ in 0..count.parse()? {
                    out.write_all(event.as_bytes())?;
                    out.flush()?;
                    #[expect(clippy::disallowed_methods, reason = "no runtime owns the thread")]
                    thread::sleep(BulkServer::EVENT_PAUSE);
                }
                out.write_all(b"0\r\n\r\n")?;
            }
            _ => {
                let body = json!({"kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": "bulk.example.com/v1", "resources": []})
                .to_string();
                let length = body.len();
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                )?;
            }
        }
        out.flush()?;
    }
}
