//! An HTTP `CONNECT` proxy for tests.

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixListener},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// A proxy on a Unix socket, on a port, and on a port with TLS that wants a client certificate.
pub(super) struct ConnectProxy {
    pub(super) address: SocketAddr,
    pub(super) tls_address: SocketAddr,
    pub(super) ca: PathBuf,
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    last_request: String,
    /// The response to every request; without one, the proxy connects.
    response: Option<Vec<u8>>,
}

impl ConnectProxy {
    pub(super) async fn start(directory: &Path) -> ConnectProxy {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
        };
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (client_certificate, client_key) = signed("client");
        let ca = write("ca.crt", &authority.pem());
        let cert = write("client.crt", &client_certificate);
        let key = write("client.key", &client_key);
        let tls = acceptor(&authority.pem(), signed("proxy"));
        let state = Arc::<Mutex<State>>::default();
        let unix = UnixListener::bind(directory.join("proxy.sock")).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let with_tls = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tls_address) = (tcp.local_addr().unwrap(), with_tls.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = unix.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        let shared = state.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        let shared = state.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = with_tls.accept().await {
                if let Ok(stream) = tls.accept(stream).await {
                    tokio::spawn(serve(stream, shared.clone()));
                }
            }
        });
        ConnectProxy { address, tls_address, ca, cert, key, state, _tasks: tasks }
    }

    pub(super) fn last_request(&self) -> String {
        self.state.lock().last_request.clone()
    }

    /// Answers every later request with these bytes, and closes its connection.
    pub(super) fn answer_with(&self, response: Vec<u8>) {
        self.state.lock().response = Some(response);
    }
}

fn acceptor(ca: &str, (certificate, key): (String, String)) -> TlsAcceptor {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<State>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    state.lock().last_request = head.clone();
    let response = state.lock().response.clone();
    if let Some(response) = response {
        let _ = stream.write_all(&response).await;
        let _ = stream.shutdown().await;
        return;
    }
    let address = head.split(' ').nth(1).unwrap().to_owned();
    let mut backend = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    stream.flush().await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut backend).await;
}
