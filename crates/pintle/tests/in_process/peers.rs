//! Certificates, clients and servers for tests of authentication.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle_machinery::Value;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream, server::TlsStream as ServerStream};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key.
pub(crate) struct Pair {
    pub(crate) certificate: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

impl Pair {
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn client(&self, name: &str, group: &str) -> Pair {
        self.client_until(name, group, 1)
    }

    /// A client certificate that expires in `days` days, or expired that many days ago.
    pub(crate) fn client_until(&self, name: &str, group: &str, days: i64) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let length = Duration::from_secs(days.unsigned_abs() * 86_400);
        let now = SystemTime::now();
        let end = if days < 0 { now - length } else { now + length };
        params.not_before = (now - Duration::from_secs(30 * 86_400)).into();
        params.not_after = end.into();
        self.sign(params)
    }

    pub(crate) fn server(&self, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// As [`Authority::server`], with an RSA key.
    pub(crate) fn rsa_server(&self, name: &str) -> Pair {
        let key = KeyPair::from_pem(include_str!("../../../x509/fixtures/rsa.key")).unwrap();
        self.sign_key(CertificateParams::new(vec![name.to_owned()]).unwrap(), key)
    }

    fn sign(&self, params: CertificateParams) -> Pair {
        self.sign_key(params, KeyPair::generate().unwrap())
    }

    fn sign_key(&self, params: CertificateParams, key: KeyPair) -> Pair {
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }
}

/// Accepts any server certificate: tests compare the certificate themselves.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The TLS parameters of a client.
#[derive(Default)]
pub(crate) struct Peer<'a> {
    pub(crate) pair: Option<&'a Pair>,
    pub(crate) name: Option<&'a str>,
    pub(crate) versions: Option<&'static [&'static SupportedProtocolVersion]>,
    pub(crate) protocol: Option<&'static str>,
    /// The cipher suites, in this order.
    pub(crate) suites: Option<&'static [SupportedCipherSuite]>,
}

impl Peer<'_> {
    /// Connects, with the client certificate if there is one.
    pub(crate) async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let mut provider = rustls::crypto::ring::default_provider();
        if let Some(suites) = self.suites {
            provider.cipher_suites = suites.to_vec();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(self.versions.unwrap_or(rustls::ALL_VERSIONS))
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody));
        let mut config = match self.pair {
            None => config.with_no_client_auth(),
            Some(pair) => config.with_client_auth_cert(vec![pair.certificate.clone()], pair.key()).unwrap(),
        };
        config.alpn_protocols = vec![self.protocol.unwrap_or("http/1.1").as_bytes().to_vec()];
        let name = match self.name {
            Some(name) => ServerName::try_from(name.to_owned()).unwrap(),
            None => ServerName::from(address.ip()),
        };
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Sends one request with these header lines; returns the status and the whole response.
    pub(crate) async fn ask(&self, address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
        let mut stream = self.connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The connection may end in any way.
        stream.read_to_end(&mut answer).await.ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("no answer: {answer}")), answer)
    }

    /// The name that the server authenticates the client as; `None` for 401.
    pub(crate) async fn who(&self, address: SocketAddr, headers: &str) -> Option<String> {
        // Only administrators may do this, and the refusal contains the user name.
        let (status, answer) = self.ask(address, "/api/v1/nodes/nobody", headers).await;
        match status {
            401 => None,
            403 => Some(answer.split("User \\\"").nth(1).unwrap().split("\\\"").next().unwrap().to_owned()),
            404 => Some("(administrator)".to_owned()),
            _ => panic!("{answer}"),
        }
    }
}

/// The response of a test's server: status and body, by method, path and request body.
pub(crate) type Answers = dyn Fn(&str, &str, Value) -> (u16, String) + Send + Sync;

/// A TLS server whose responses a test computes.
pub(crate) struct Https {
    pub(crate) url: String,
    pub(crate) ca: String,
}

impl Https {
    pub(crate) async fn start(answers: Arc<Answers>) -> Https {
        Https::named(&["127.0.0.1"], answers).await
    }

    /// As [`Https::start`]; the certificate has these names.
    pub(crate) async fn named(names: &[&str], answers: Arc<Answers>) -> Https {
        Https::serve(names, move |request| answer(request, answers.clone())).await
    }

    /// A server whose certificate has these names.
    pub(crate) async fn serve<F>(
        names: &[&str],
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> Https
    where
        F: Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send + 'static,
    {
        let authority = Authority::new("test");
        let pair = authority.server(names);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.certificate.clone()], pair.key())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(answer);
                    let connection = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Https { url, ca: authority.pem().to_owned() }
    }
}

/// A TLS server that answers by bytes, so that it can break any rule of HTTP.
pub(crate) struct RawHttps {
    pub(crate) port: u16,
    pub(crate) ca: String,
}

impl RawHttps {
    /// A server at 127.0.0.1, which asks for client certificates of the authority `clients`, and calls `answer` for each
    /// connection with the name of its client: the common name, or "" without a certificate.
    pub(crate) async fn start<F>(
        clients: &[u8],
        answer: impl Fn(ServerStream<TcpStream>, String) -> F + Clone + Send + 'static,
    ) -> RawHttps
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let authority = Authority::new("kubelets");
        let pair = authority.server(&["127.0.0.1"]);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(clients).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![pair.certificate.clone()], pair.key())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let client = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
                    let name = client.map(common_name).unwrap_or_default();
                    answer(stream, name).await;
                });
            }
        });
        RawHttps { port, ca: authority.pem().to_owned() }
    }
}

fn common_name(certificate: &CertificateDer<'_>) -> String {
    let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
    parsed.subject().iter_common_name().next().unwrap().as_str().unwrap().to_owned()
}

async fn answer(
    request: Request<Incoming>,
    answers: Arc<Answers>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, text) = answers(head.method.as_str(), head.uri.path(), body);
    Ok(Response::builder().status(status).body(Full::new(Bytes::from(text))).unwrap())
}
