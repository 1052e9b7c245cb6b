//! Verification of server certificates, where Pintle is the client.

use crate::TrustAnchors;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, ExtendedKeyPurpose, OtherError, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{self, CryptoProvider},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies servers as Go's clients do: by a chain to a trust anchor, or because the server's certificate is itself,
/// byte for byte, a trust anchor (as made by `openssl req -x509`, which is both). Name, validity period and key usage
/// are checked in either case.
#[derive(Debug)]
pub struct ServerVerifier {
    anchors: TrustAnchors,
    /// `None` without trust anchors: no server is accepted.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerVerifier {
    /// A verifier with these trust anchors; without any, every server is refused with an unknown issuer.
    pub fn new(anchors: TrustAnchors, provider: Arc<CryptoProvider>) -> ServerVerifier {
        let chains = WebPkiServerVerifier::builder_with_provider(anchors.roots.clone(), provider.clone());
        ServerVerifier { anchors, chains: chains.build().ok(), provider }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.anchors.contains(end_entity) {
            return verify_anchor(end_entity, server_name, now);
        }
        let verified = match &self.chains {
            None => Err(CertificateError::UnknownIssuer.into()),
            Some(chains) => {
                chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
        };
        verified.map_err(|error| {
            let error = first_error(error, end_entity, server_name, now);
            with_legacy_name(error, end_entity, server_name)
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate that has the server's name as its common name only, which was sufficient in the past.
#[derive(Debug, thiserror::Error)]
#[error("certificate relies on legacy Common Name field, use SANs instead")]
struct LegacyCommonName;

/// The first of the errors of a certificate, in the order of Go's checks: validity period, name, issuer.
fn first_error(
    error: Error,
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Error {
    let is_of_issuer = matches!(
        error,
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)
    );
    let checks = || {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        check_period(&parsed, now)?;
        verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)
    };
    match is_of_issuer.then(checks) {
        Some(Err(first)) => first,
        _ => error,
    }
}

/// The error of a certificate, in which a legacy common name is told from other names.
fn with_legacy_name(error: Error, certificate: &CertificateDer<'_>, server_name: &ServerName<'_>) -> Error {
    let no_names = match &error {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            presented.is_empty()
        }
        _ => false,
    };
    let is_of_host = matches!(server_name, ServerName::DnsName(_));
    match no_names && is_of_host && has_common_name(certificate, &server_name.to_str()) {
        true => CertificateError::Other(OtherError(Arc::new(LegacyCommonName))).into(),
        false => error,
    }
}

fn has_common_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    let mut common_names = parsed.subject().iter_common_name();
    common_names.any(|own| own.as_str().is_ok_and(|own| own.eq_ignore_ascii_case(name)))
}

/// Verifies a server whose certificate is itself a trust anchor.
fn verify_anchor(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    check_period(&parsed, now)?;
    let usage = parsed.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    if usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Err(CertificateError::InvalidPurposeContext {
            required: ExtendedKeyPurpose::ServerAuth,
            presented: Vec::new(),
        }
        .into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)
        .map_err(|error| with_legacy_name(error, certificate, server_name))?;
    Ok(ServerCertVerified::assertion())
}

fn check_period(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    if seconds < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if seconds > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}
