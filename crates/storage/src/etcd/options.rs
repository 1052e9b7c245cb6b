//! The options of the connection to an etcd cluster.

use super::{dialer::EtcdDialer, metrics::EtcdObserver};
use pintle_tls::ServerVerifier;
use pintle_x509::TrustAnchors;
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::SingleCertAndKey,
};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The options of an [`EtcdStorage`](super::EtcdStorage): its cluster, its keys, its limits.
#[derive(Clone)]
pub struct EtcdOptions {
    /// The client URLs of the cluster's members: `http://`, `https://`, or without a scheme.
    pub endpoints: Vec<String>,
    /// The prefix of all keys. Keys outside are not read, written or watched.
    pub prefix: String,
    /// The CA certificates that the members' certificates are verified with, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, in PEM. Requires `key_file`.
    pub cert_file: Option<PathBuf>,
    /// The private key of `cert_file`, in PEM.
    pub key_file: Option<PathBuf>,
    /// The longest time for which a lease is reused for keys with the same time to live; also at most 5% of that
    /// time.
    pub lease_reuse: Duration,
    /// The longest time that [`EtcdStorage::open`](super::EtcdStorage::open) waits for the cluster.
    pub open_patience: Duration,
    /// Opens the connections; `None` for direct ones.
    pub dialer: Option<Arc<dyn EtcdDialer>>,
    /// The observer of requests.
    pub observer: Option<Arc<dyn EtcdObserver>>,
    /// Uses progress responses of every server version, also of those that are too old: only for tests, which have no
    /// newer one.
    #[doc(hidden)]
    pub trust_progress: bool,
}

impl EtcdOptions {
    /// A cluster without TLS.
    pub fn new(
        endpoints: impl IntoIterator<Item = impl Into<String>>,
        prefix: impl Into<String>,
    ) -> EtcdOptions {
        EtcdOptions {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: prefix.into(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            lease_reuse: Duration::from_secs(60),
            open_patience: Duration::from_secs(20),
            dialer: None,
            observer: None,
            trust_progress: false,
        }
    }

    /// Checks the endpoints and the files, and connects to nothing.
    ///
    /// # Errors
    /// What [`EtcdStorage::open`](super::EtcdStorage::open) reports before it connects, or when it does.
    pub fn check(&self) -> Result<(), EtcdOpenError> {
        let targets = self.targets()?;
        match targets.iter().any(|target| target.tls.is_some()) || self.has_tls() {
            true => self.tls_config().map(drop),
            false => Ok(()),
        }
    }

    /// Parses and checks the endpoints.
    pub(super) fn targets(&self) -> Result<Vec<Target>, EtcdOpenError> {
        if self.endpoints.is_empty() {
            return Err(EtcdOpenError::Options("there are no etcd servers".to_owned()));
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Err(EtcdOpenError::Options(
                "a certificate for etcd needs its key, and the key its certificate".to_owned(),
            ));
        }
        self.endpoints.iter().map(|endpoint| Target::parse(endpoint, self.has_tls())).collect()
    }

    fn has_tls(&self) -> bool {
        self.ca_file.is_some() || self.cert_file.is_some()
    }

    /// The TLS configuration, read from the files at each connection: they are replaced when they expire.
    pub(super) fn tls_config(&self) -> Result<ClientConfig, EtcdOpenError> {
        let Some(ca_file) = &self.ca_file else {
            return Err(EtcdOpenError::Options(
                "an https:// etcd server needs the file with its authority".to_owned(),
            ));
        };
        let mut roots = TrustAnchors::default();
        for certificate in certificates(ca_file)? {
            roots.add(certificate).map_err(|error| unusable(ca_file, error))?;
        }
        let provider = Arc::new(pintle_tls::crypto_provider());
        let verifier = ServerVerifier::new(roots, provider.clone());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(ca_file, error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&self.cert_file, &self.key_file) {
            (Some(cert_file), Some(key_file)) => {
                let key =
                    PrivateKeyDer::from_pem_file(key_file).map_err(|error| unusable(key_file, error))?;
                let own = pintle_tls::certified_key(certificates(cert_file)?, key, &provider);
                let own = own.map_err(|error| unusable(cert_file, error))?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, EtcdOpenError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(file, error))?;
    if certificates.is_empty() {
        return Err(unusable(file, "there is no certificate in it"));
    }
    Ok(certificates)
}

fn unusable(file: &Path, error: impl fmt::Display) -> EtcdOpenError {
    EtcdOpenError::File { path: file.to_owned(), why: error.to_string() }
}

/// The error of opening an engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdOpenError {
    /// Invalid or contradictory options.
    #[error("{0}")]
    Options(String),
    /// A certificate or key file is unusable.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The cluster does not answer.
    #[error("etcd does not answer: {0}")]
    Unavailable(String),
}

/// The host of requests over a Unix socket, and the name in the certificate behind it.
const LOCAL_HOST: &str = "localhost";

/// The address of a member.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// A host name or IP address, and a port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A parsed endpoint.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: Address,
    /// The server name that the certificate must have; `None` without TLS.
    pub(super) tls: Option<ServerName<'static>>,
}

impl Target {
    /// Parses an endpoint in a form of etcd's clients: `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT`, `unix://PATH` or,
    /// with TLS, `unixs://PATH`.
    fn parse(endpoint: &str, tls_by_default: bool) -> Result<Target, EtcdOpenError> {
        let invalid =
            |why: &str| EtcdOpenError::Options(format!("the etcd server {endpoint:?} is invalid: {why}"));
        let (tls, rest) = match endpoint.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(("unix", path)) => return Target::unix(path, false).map_err(invalid),
            Some(("unixs", path)) => return Target::unix(path, true).map_err(invalid),
            Some(_) => return Err(invalid("its scheme is none of http, https, unix and unixs")),
            None => (tls_by_default, endpoint),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| invalid("its port is no number"))?)
            }
            _ => return Err(invalid("it has no port")),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.contains('/') {
            return Err(invalid("it has no host"));
        }
        let tls = match tls {
            true => Some(ServerName::try_from(host.clone()).map_err(|error| invalid(&error.to_string()))?),
            false => None,
        };
        Ok(Target { address: Address::Tcp(host, port), tls })
    }

    /// The socket's certificate names the local host, for a path is no name.
    fn unix(path: &str, tls: bool) -> Result<Target, &'static str> {
        if path.is_empty() {
            return Err("it has no path");
        }
        let name = ServerName::try_from(LOCAL_HOST).map_err(|_| "the local host has no name")?;
        Ok(Target { address: Address::Unix(path.into()), tls: tls.then_some(name) })
    }

    /// The origin of requests.
    pub(super) fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => format!("{scheme}://[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{scheme}://{host}:{port}"),
            Address::Unix(_) => format!("{scheme}://{LOCAL_HOST}"),
        }
    }
}

/// The address without a scheme, or with `unix://`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls_or_addresses() {
        let rows: &[(&str, bool, Option<&str>)] = &[
            ("http://127.0.0.1:2379", false, Some("http://127.0.0.1:2379")),
            ("http://127.0.0.1:2379/", true, Some("http://127.0.0.1:2379")),
            ("https://etcd.example:2379", false, Some("https://etcd.example:2379")),
            ("https://[::1]:2379", false, Some("https://[::1]:2379")),
            ("localhost:2379", false, Some("http://localhost:2379")),
            ("localhost:2379", true, Some("https://localhost:2379")),
            ("unix:///run/etcd", true, Some("http://localhost")),
            ("unixs://etcd.sock", false, Some("https://localhost")),
            ("unix://", false, None),
            ("ftp://a:1", false, None),
            ("http://127.0.0.1", false, None),
            ("http://[::1]", false, None),
            ("http://:2379", false, None),
            ("http://host:port", false, None),
            ("https://a b:1", false, None),
            ("", false, None),
        ];
        for (endpoint, tls, expected) in rows {
            let origin = Target::parse(endpoint, *tls).map(|target| target.origin());
            assert_eq!(origin.as_deref().ok(), *expected, "{endpoint}: {origin:?}");
        }
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        let none: [&str; 0] = [];
        let no_key = EtcdOptions { cert_file: Some("c".into()), ..EtcdOptions::new(["http://a:1"], "") };
        for options in [EtcdOptions::new(none, ""), no_key] {
            assert!(matches!(options.targets(), Err(EtcdOpenError::Options(_))));
        }
        assert!(matches!(EtcdOptions::new(["https://a:1"], "").tls_config(), Err(EtcdOpenError::Options(_))));
        let no_file = EtcdOptions { ca_file: Some("no such file".into()), ..EtcdOptions::new(["a:1"], "") };
        assert!(matches!(no_file.tls_config(), Err(EtcdOpenError::File { .. })));
    }
}
