//! Handshakes between a rustls client and a rustls server, in memory.

use crate::{ServerVerifier, certified_key};
use pintle_x509::{SignatureError, TrustAnchors, VerifyError};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, Error,
    InconsistentKeys, ServerConfig, ServerConnection, SignatureScheme, SupportedProtocolVersion,
    client::{ResolvesClientCert, danger::HandshakeSignatureValid},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::danger::{ClientCertVerified, ClientCertVerifier},
    sign::CertifiedKey,
    version,
};
use std::sync::Arc;

const AUTHORITY: &str = include_str!("../../x509/fixtures/authority.crt");
const VERSION_ONE: &str = include_str!("../../x509/fixtures/version-one.crt");
const VERSION_ONE_KEY: &str = include_str!("../../x509/fixtures/version-one.key");

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// A self-signed server certificate, with its key.
struct Own {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

fn self_signed(adapt: impl FnOnce(&mut CertificateParams)) -> Own {
    let mut params = CertificateParams::new(vec!["hook.example.com".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    adapt(&mut params);
    let key = KeyPair::generate().unwrap();
    Own { certificate: params.self_signed(&key).unwrap().der().clone(), key }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Verifies only that the client has the private key, with this crate's functions.
#[derive(Debug)]
struct AnyClient;

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        crate::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        crate::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Presents a certificate that need not match the key.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Runs a handshake. Returns the server's view of the client, or the error of the side that failed.
fn shake(
    own: &Own,
    anchors: &[CertificateDer<'static>],
    name: &str,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    version: &'static SupportedProtocolVersion,
) -> Result<Option<CertificateDer<'static>>, Error> {
    let mut trusted = TrustAnchors::default();
    for anchor in anchors {
        trusted.add(anchor.clone()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier::new(trusted, provider())));
    let config = match client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = provider().key_provider.load_private_key(key)?;
            let shown = Shown(Arc::new(CertifiedKey::new(vec![certificate], key)));
            config.with_client_cert_resolver(Arc::new(shown))
        }
    };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name)?;
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])?
        .with_client_cert_verifier(Arc::new(AnyClient))
        .with_single_cert(vec![own.certificate.clone()], key)?;
    let mut server = ServerConnection::new(Arc::new(config))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    let seen = server.peer_certificates().and_then(|certificates| certificates.first());
    Ok(seen.map(|certificate| certificate.clone().into_owned()))
}

#[test]
fn a_client_of_version_one_proves_that_it_has_its_key() {
    let own = self_signed(|_| ());
    let shown = certificate(VERSION_ONE);
    let key = || PrivateKeyDer::from_pem_slice(VERSION_ONE_KEY.as_bytes()).unwrap();
    let other = || PrivateKeyDer::try_from(KeyPair::generate().unwrap().serialize_der()).unwrap();
    for version in [&version::TLS12, &version::TLS13] {
        let with = |key| {
            shake(
                &own,
                std::slice::from_ref(&own.certificate),
                "hook.example.com",
                Some((shown.clone(), key)),
                version,
            )
        };
        assert_eq!(with(key()), Ok(Some(shown.clone())));
        assert_eq!(with(other()), Err(CertificateError::BadSignature.into()));
    }
}

#[test]
fn credentials_may_be_of_version_one() {
    let with = |certificate, key: &str| {
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        certified_key(vec![certificate], key, &provider()).map(|own| own.cert)
    };
    let other = KeyPair::generate().unwrap().serialize_pem();
    let shown = certificate(VERSION_ONE);
    assert_eq!(with(shown.clone(), VERSION_ONE_KEY), Ok(vec![shown.clone()]));
    assert_eq!(with(shown, &other), Err(InconsistentKeys::KeyMismatch.into()));
    let garbage = CertificateDer::from(vec![0x30, 0]);
    assert_eq!(with(garbage, &other), Err(CertificateError::BadEncoding.into()));
}

#[test]
fn a_server_whose_certificate_is_an_anchor_is_believed() {
    let own = self_signed(|_| ());
    let anchors = [certificate(AUTHORITY), own.certificate.clone()];
    for version in [&version::TLS12, &version::TLS13] {
        assert_eq!(shake(&own, &anchors, "hook.example.com", None, version), Ok(None));
    }
}

#[test]
fn a_server_that_is_refused_is_told_why() {
    let (own, other) = (self_signed(|_| ()), self_signed(|_| ()));
    let error = |anchors: &[CertificateDer<'static>], name| {
        shake(&own, anchors, name, None, &version::TLS13).unwrap_err()
    };
    let is = |error: &Error, expected: VerifyError| match error {
        Error::InvalidCertificate(CertificateError::Other(why)) => {
            assert_eq!(why.0.downcast_ref(), Some(&expected));
        }
        other => panic!("{other:?}"),
    };
    let names = "certificate is valid for hook.example.com, not other.example.com".to_owned();
    is(&error(std::slice::from_ref(&own.certificate), "other.example.com"), VerifyError::HostName(names));
    is(&error(&[], "hook.example.com"), VerifyError::UnknownAuthority(None));
    // The same name with another key is another certificate.
    let why = Box::new(VerifyError::Signature(SignatureError::Wrong("x509: ECDSA verification failure")));
    let name = "rcgen self signed cert".to_owned();
    is(&error(&[other.certificate], "hook.example.com"), VerifyError::UnknownAuthority(Some((why, name))));
}
