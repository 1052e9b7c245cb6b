//! Configures TLS: certificates by server name, versions, cipher suites
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).
//!
//! The handshake requests a client certificate and accepts any whose private key the client proves to have. The
//! authenticator decides which certificates it trusts, and its refusal is an HTTP response that says so.

use arc_swap::ArcSwap;
use rustls::{
    DigitallySignedStruct, DistinguishedName, NamedGroup, ServerConfig, SignatureAlgorithm, SignatureScheme,
    SupportedCipherSuite, SupportedProtocolVersion,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::{
        ClientHello, ResolvesServerCert,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version,
};
use std::{collections::HashMap, fmt, sync::Arc};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The reason why a TLS configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate and a key that do not match, or that cannot be parsed.
    #[error("{name}: {why}")]
    Pair {
        /// The name of the pair.
        name: String,
        /// The reason.
        why: String,
    },
    /// The name of a TLS version is unknown.
    #[error("unknown tls version {0:?}")]
    UnknownVersion(String),
    /// A setting is invalid or unsupported.
    #[error("{0}")]
    Settings(String),
}

/// A certificate with its chain, and its key.
#[derive(Clone)]
pub struct CertificatePair {
    /// The name of the pair in messages; it contains no secret.
    pub name: String,
    /// The chain, leaf first, as PEM.
    pub certificate: Vec<u8>,
    /// The key of the leaf, as PEM.
    pub key: Vec<u8>,
}

impl fmt::Debug for CertificatePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificatePair").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CertificatePair {
    fn load(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let failed = |why: String| TlsError::Pair { name: self.name.clone(), why };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| failed(error.to_string()))?;
        if chain.is_empty() {
            return Err(failed("there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        // The parser's error might quote the key.
        let key = key.map_err(|_| failed("the private key cannot be read".to_owned()))?;
        let key =
            pintle_tls::certified_key(chain, key, provider).map_err(|error| failed(error.to_string()))?;
        Ok(Arc::new(key))
    }
}

/// The settings that are fixed while the server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsSettings {
    /// The minimum version.
    pub min_version: TlsVersion,
    /// Cipher suites of TLS 1.2, by Go's names; an empty list enables all.
    pub cipher_suites: Vec<String>,
    /// Key exchanges, by Go's numbers; an empty list enables all.
    pub curve_preferences: Vec<u16>,
    /// Whether HTTP/2 is enabled.
    pub http2: bool,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings {
            min_version: TlsVersion::Tls12,
            cipher_suites: Vec::new(),
            curve_preferences: Vec::new(),
            http2: true,
        }
    }
}

/// A TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2, and the names of older versions, which are not supported.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl TlsVersion {
    /// Parses Go's name of a version; the empty name is the default.
    ///
    /// # Errors
    /// When the name is unknown.
    pub fn parse(name: &str) -> Result<TlsVersion, TlsError> {
        match name {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(TlsVersion::Tls12),
            "VersionTLS13" => Ok(TlsVersion::Tls13),
            other => Err(TlsError::UnknownVersion(other.to_owned())),
        }
    }
}

/// The certificates of new connections.
pub struct TlsContent<'a> {
    /// The certificate for server names that no other certificate matches.
    pub certificate: &'a CertificatePair,
    /// Certificates for server names; without names, those in the certificate are used. Earlier entries take
    /// precedence.
    pub sni: &'a [(CertificatePair, Vec<String>)],
    /// The certificate authorities that the handshake names to clients.
    pub client_authorities: &'a [CertificateDer<'static>],
}

/// The TLS configuration of a socket, whose certificates can be replaced.
pub struct ServingTls {
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    http2: bool,
    current: ArcSwap<Configs>,
}

/// The configurations of new connections. They differ in the choice of the cipher suite, which is as in Go.
struct Configs {
    /// The server's order of suites decides.
    own_order: Arc<ServerConfig>,
    /// The client's order decides.
    clients_order: Arc<ServerConfig>,
}

impl ServingTls {
    /// A configuration with these settings and certificates.
    ///
    /// # Errors
    /// When a setting is not supported, or a certificate cannot be used.
    pub fn new(settings: &TlsSettings, content: &TlsContent<'_>) -> Result<ServingTls, TlsError> {
        let mut provider = pintle_tls::crypto_provider();
        if !settings.cipher_suites.is_empty() {
            let wanted = cipher_suites(&settings.cipher_suites).map_err(TlsError::Settings)?;
            // The suites of TLS 1.3 are not configurable, as in Go.
            provider.cipher_suites.retain(|suite| match suite {
                SupportedCipherSuite::Tls13(_) => true,
                SupportedCipherSuite::Tls12(_) => wanted.contains(&suite.suite()),
            });
            let has_required = wanted.iter().any(|suite| HTTP2_REQUIRED.contains(suite));
            if settings.http2 && settings.min_version == TlsVersion::Tls12 && !has_required {
                return Err(TlsError::Settings(
                    "error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required \
                     AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or \
                     TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"
                        .to_owned(),
                ));
            }
        }
        if !settings.curve_preferences.is_empty() {
            let groups = groups(&settings.curve_preferences).map_err(TlsError::Settings)?;
            provider.kx_groups.retain(|group| groups.contains(&group.name()));
        }
        let provider = Arc::new(provider);
        let versions = match settings.min_version {
            TlsVersion::Tls12 => vec![&version::TLS13, &version::TLS12],
            TlsVersion::Tls13 => vec![&version::TLS13],
        };
        let first = config(&provider, &versions, settings.http2, content)?;
        let current = ArcSwap::from_pointee(first);
        Ok(ServingTls { provider, versions, http2: settings.http2, current })
    }

    /// Replaces the certificates for new connections.
    ///
    /// # Errors
    /// When a certificate cannot be used; the old ones stay in force.
    pub fn replace(&self, content: &TlsContent<'_>) -> Result<(), TlsError> {
        let next = config(&self.provider, &self.versions, self.http2, content)?;
        self.current.store(Arc::new(next));
        Ok(())
    }

    /// The configuration for a client.
    pub(super) fn for_client(&self, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        let current = self.current.load();
        match pintle_tls::prefers_chacha20(hello.cipher_suites()) {
            true => current.clients_order.clone(),
            false => current.own_order.clone(),
        }
    }
}

fn config(
    provider: &Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    http2: bool,
    content: &TlsContent<'_>,
) -> Result<Configs, TlsError> {
    let hints = content.client_authorities.iter().filter_map(|certificate| {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        Some(DistinguishedName::from(certificate.subject().as_raw().to_vec()))
    });
    let verifier =
        AnyCertificate { hints: hints.collect(), algorithms: provider.signature_verification_algorithms };
    let resolver = Certificates::load(content, provider)?;
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|error| TlsError::Settings(error.to_string()))?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = match http2 {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    let clients_order = Arc::new(config.clone());
    config.ignore_client_order = true;
    Ok(Configs { own_order: Arc::new(config), clients_order })
}

/// Accepts any client certificate whose private key the client proves to have.
#[derive(Debug)]
struct AnyCertificate {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        pintle_tls::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        pintle_tls::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Selects the certificate by server name.
#[derive(Debug)]
struct Certificates {
    default: Arc<CertifiedKey>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
    /// Certificates with names, for server names that they are valid for but not listed under.
    named: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    fn load(content: &TlsContent<'_>, provider: &CryptoProvider) -> Result<Certificates, TlsError> {
        let default = content.certificate.load(provider)?;
        let (mut explicit, mut extracted) = (HashMap::new(), HashMap::new());
        let mut named = Vec::with_capacity(content.sni.len());
        for (pair, names) in content.sni {
            let key = pair.load(provider)?;
            for name in names {
                explicit.entry(name.clone()).or_insert_with(|| key.clone());
            }
            if names.is_empty() {
                for name in names_of(&key) {
                    extracted.entry(name).or_insert_with(|| key.clone());
                }
            }
            named.push(key);
        }
        extracted.extend(explicit);
        Ok(Certificates { default, by_name: extracted, named })
    }

    /// The certificate for a server name; `fits` tells whether the client can use the key of one that is chosen for no
    /// listed name.
    fn find(&self, name: &str, fits: impl Fn(&CertifiedKey) -> bool) -> &Arc<CertifiedKey> {
        let name = name.to_ascii_lowercase();
        let wildcard = || match name.split_once('.') {
            Some((_, rest)) => format!("*.{rest}"),
            None => "*".to_owned(),
        };
        let listed = self.by_name.get(&name).or_else(|| self.by_name.get(&wildcard()));
        listed.unwrap_or_else(|| {
            self.all().find(|key| fits(key) && is_for(key, &name)).unwrap_or(&self.default)
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<CertifiedKey>> {
        std::iter::once(&self.default).chain(&self.named)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |key: &CertifiedKey| can_use(&hello, key);
        let key = match hello.server_name() {
            Some(name) if !self.named.is_empty() => self.find(name, fits),
            _ => self.all().find(|key| fits(key)).unwrap_or(&self.default),
        };
        Some(key.clone())
    }
}

/// Whether a client can verify signatures of this key, and in TLS 1.2 has a cipher suite for it.
fn can_use(hello: &ClientHello<'_>, key: &CertifiedKey) -> bool {
    key.key.choose_scheme(hello.signature_schemes()).is_some()
        && hello.cipher_suites().iter().any(|suite| match suite {
            Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
            | Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
            | Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
                key.key.algorithm() == SignatureAlgorithm::RSA
            }
            Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
            | Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
                key.key.algorithm() != SignatureAlgorithm::RSA
            }
            Suite::TLS13_AES_128_GCM_SHA256
            | Suite::TLS13_AES_256_GCM_SHA384
            | Suite::TLS13_CHACHA20_POLY1305_SHA256 => true,
            _ => false,
        })
}

fn is_for(key: &CertifiedKey, name: &str) -> bool {
    let Some(Ok(leaf)) = key.cert.first().map(webpki::EndEntityCert::try_from) else { return false };
    ServerName::try_from(name).is_ok_and(|name| leaf.verify_is_valid_for_subject_name(&name).is_ok())
}

/// The DNS names of a certificate. IP addresses are left out: clients do not send them as server names.
fn names_of(key: &CertifiedKey) -> Vec<String> {
    let Some(leaf) = key.cert.first() else { return Vec::new() };
    let Ok((_, certificate)) = X509Certificate::from_der(leaf) else { return Vec::new() };
    let common_name = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let is_name = |name: &&str| *name == "*" || is_domain(name.strip_prefix("*.").unwrap_or(name));
    let mut names: Vec<String> = common_name.filter(is_name).map(str::to_owned).into_iter().collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}

fn is_domain(name: &str) -> bool {
    name.parse::<std::net::IpAddr>().is_err()
        && pintle_machinery::validation::is_dns1123_subdomain(name).is_empty()
}

type Suite = rustls::CipherSuite;

const HTTP2_REQUIRED: [Suite; 2] =
    [Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];

/// The supported suites, by Go's names.
const SUITES: [(&str, Suite); 11] = [
    ("TLS_AES_128_GCM_SHA256", Suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", Suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", Suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Go's suites that this server does not support: without forward secrecy, or with broken or fragile ciphers.
const REFUSED: [&str; 15] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

fn cipher_suites(names: &[String]) -> Result<Vec<Suite>, String> {
    let suite = |name: &String| match SUITES.iter().find(|(own, _)| own == name) {
        Some((_, suite)) => Ok(*suite),
        None if REFUSED.contains(&name.as_str()) || name == "TLS_RSA_WITH_RC4_128_SHA" => Err(format!(
            "Cipher suite {name} is not secure, and not supported by this server: leave it out of --tls-cipher-suites"
        )),
        None => Err(format!("Cipher suite {name} not supported or doesn't exist")),
    };
    names.iter().map(suite).collect()
}

fn groups(numbers: &[u16]) -> Result<Vec<NamedGroup>, String> {
    let group = |number: &u16| match number {
        23 => Ok(NamedGroup::secp256r1),
        24 => Ok(NamedGroup::secp384r1),
        29 => Ok(NamedGroup::X25519),
        other => Err(format!(
            "--tls-curve-preferences: {other} is not supported by this server, 23, 24 and 29 are"
        )),
    };
    numbers.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serving_certificate_may_be_of_version_one() {
        let pair = CertificatePair {
            name: "a pair".to_owned(),
            certificate: include_bytes!("../../../x509/fixtures/version-one.crt").to_vec(),
            key: include_bytes!("../../../x509/fixtures/version-one.key").to_vec(),
        };
        assert!(pair.load(&pintle_tls::crypto_provider()).is_ok());
    }
}
