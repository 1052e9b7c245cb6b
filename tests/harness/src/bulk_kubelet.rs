//! A kubelet that sends and takes much and computes little, for the measurement of what streams to nodes cost.

use crate::{ADDRESSES, Client, Connection, Error, Server};
use pintle_spdy::{Session, Stream};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    thread,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

/// A kubelet with one pod, in this process until its end. It has to run in a network of its own
/// ([`crate::in_own_network`]).
///
/// After an upgrade to SPDY it either speaks SPDY and reads the streams to their ends, or exchanges bytes that its client
/// asks for in place of SPDY. A server that forwards them does not notice the difference.
pub struct BulkKubelet;

/// The port of the first kubelet; each further one has the next.
static PORT: AtomicU16 = AtomicU16::new(28544);
/// How many connections were upgraded.
static UPGRADED: AtomicUsize = AtomicUsize::new(0);
const POD: &str = "/api/v1/namespaces/bulk-streams/pods/bulk";
/// The bytes of one write.
const PIECE_BYTES: usize = 32 << 10;
/// The first byte of what is not SPDY.
const RAW: u8 = b'R';
/// The answer when everything has arrived.
const DONE: u8 = b'K';

impl BulkKubelet {
    /// Starts the kubelet, and registers its node and its pod with `server`.
    ///
    /// # Errors
    /// When an object is refused.
    pub fn start(server: &Server) -> Result<BulkKubelet, Error> {
        let [address, ..] = ADDRESSES;
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([address.to_owned()])?.self_signed(&key)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((address, port)))?;
        thread::spawn(move || runtime.block_on(accept(listener, TlsAcceptor::from(Arc::new(tls)))));
        register(server, address, port)?;
        Ok(BulkKubelet)
    }

    /// How many connections kubelets of this process have upgraded.
    pub fn upgraded() -> usize {
        UPGRADED.load(Ordering::Relaxed)
    }

    /// The path of an `exec` with standard input and output.
    pub fn exec() -> String {
        format!("{POD}/exec?command=bulk&container=bulk&stdin=true&stdout=true")
    }

    /// The path of a `portforward`.
    pub fn port_forward() -> String {
        format!("{POD}/portforward?ports=80")
    }

    /// Opens a stream over SPDY.
    ///
    /// # Errors
    /// When the connection is not upgraded.
    pub fn spdy(client: &Client, path: &str) -> Result<Connection, Error> {
        let mut connection = client.connect()?;
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ];
        connection.send("POST", path, &headers, b"")?;
        upgraded(&mut connection, path)?;
        Ok(connection)
    }

    /// Opens a stream over WebSocket.
    ///
    /// # Errors
    /// When the connection is not upgraded.
    pub fn web_socket(client: &Client, path: &str, protocol: &str) -> Result<Connection, Error> {
        let mut connection = client.connect()?;
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", protocol),
        ];
        connection.send("GET", path, &headers, b"")?;
        upgraded(&mut connection, path)?;
        Ok(connection)
    }

    /// The first bytes of a client, in place of SPDY: the kubelet sends `down` bytes, and takes `up` bytes, which it
    /// confirms with a byte.
    pub fn raw(down: u64, up: u64) -> Vec<u8> {
        [&[RAW][..], &down.to_be_bytes(), &up.to_be_bytes()].concat()
    }
}

fn upgraded(connection: &mut Connection, path: &str) -> Result<(), Error> {
    let (status, headers) = connection.head()?;
    match status {
        101 => Ok(()),
        _ => {
            let body = connection.body(&headers)?;
            Err(format!("{path}: {status} {}", String::from_utf8_lossy(&body)).into())
        }
    }
}

/// Creates the node and the pod.
fn register(server: &Server, address: &str, port: u16) -> Result<(), Error> {
    let client = server.client()?;
    let create = |path: &str, object: Value| -> Result<(), Error> {
        let response = client.post(path, &object)?;
        match response.status {
            201 => Ok(()),
            status => Err(format!("POST {path}: {status} {}", response.text()).into()),
        }
    };
    create(
        "/api/v1/nodes",
        json!({"metadata": {"name": "bulk"}, "status": {"addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}),
    )?;
    create("/api/v1/namespaces", json!({"metadata": {"name": "bulk-streams"}}))?;
    create("/api/v1/namespaces/bulk-streams/serviceaccounts", json!({"metadata": {"name": "default"}}))?;
    create(
        "/api/v1/namespaces/bulk-streams/pods",
        json!({"metadata": {"name": "bulk"},
            "spec": {"nodeName": "bulk", "containers": [{"name": "bulk", "image": "bulk", "stdin": true}]}}),
    )?;
    let status = json!({"status": {"phase": "Running", "podIP": address}}).to_string();
    let headers = [("content-type", "application/merge-patch+json")];
    let patched = client.request("PATCH", &format!("{POD}/status"), &headers, status.as_bytes())?;
    match patched.status {
        200 => Ok(()),
        status => Err(format!("the status of the pod: {status} {}", patched.text()).into()),
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor) {
    while let Ok((socket, _)) = listener.accept().await {
        let tls = tls.clone();
        // A connection ends with an error when its client closes it.
        tokio::spawn(async move { serve(socket, tls).await.ok() });
    }
}

async fn serve(socket: TcpStream, tls: TlsAcceptor) -> Result<(), Error> {
    socket.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(PIECE_BYTES, tls.accept(socket).await?);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream
        .write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: \
              v4.channel.k8s.io\r\n\r\n",
        )
        .await?;
    stream.flush().await?;
    UPGRADED.fetch_add(1, Ordering::Relaxed);
    match stream.read_u8().await? {
        RAW => exchange(stream).await,
        first => {
            let (read, write) = tokio::io::split(stream);
            let first = std::io::Cursor::new([first]);
            let connection = tokio::io::join(first.chain(read), write);
            let (session, mut streams) = Session::server(connection);
            let input_ended = watch::Sender::new(false);
            while let Some(stream) = streams.recv().await {
                let input_ended = input_ended.clone();
                tokio::spawn(async move { take(stream, input_ended).await.ok() });
            }
            drop(session);
            Ok(())
        }
    }
}

/// Sends and takes as many bytes as the client says.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), Error> {
    let (mut down, up) = (stream.read_u64().await?, stream.read_u64().await?);
    let piece = [b'x'; PIECE_BYTES];
    while let Some(next) =
        piece.get(..usize::try_from(down)?.min(piece.len())).filter(|next| !next.is_empty())
    {
        stream.write_all(next).await?;
        down -= next.len() as u64;
    }
    stream.flush().await?;
    tokio::io::copy(&mut (&mut stream).take(up), &mut tokio::io::sink()).await?;
    stream.write_u8(DONE).await?;
    stream.flush().await?;
    // The client closes the connection.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Reads standard input to its end. Then the command has ended, and with it all streams.
async fn take(stream: Stream, input_ended: watch::Sender<bool>) -> Result<(), Error> {
    stream.accept().await?;
    let is_input = stream.headers().get("streamtype") == Some("stdin");
    let (mut reader, writer) = stream.split();
    match is_input {
        true => {
            while reader.next().await?.is_some() {}
            input_ended.send_replace(true);
        }
        false => drop(input_ended.subscribe().wait_for(|ended| *ended).await?),
    }
    writer.finish().await?;
    Ok(())
}
