//! Handshake signatures: prove that a peer has the private key of its certificate.

use rustls::{
    DigitallySignedStruct, Error, PeerIncompatible,
    client::danger::HandshakeSignatureValid,
    crypto::{self, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, SubjectPublicKeyInfoDer},
};
use webpki::{EndEntityCert, RawPublicKeyEntity};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies a signature of TLS 1.2, for any X.509 version of the certificate.
///
/// # Errors
/// When the signature is not valid for the certificate's key.
pub fn verify_tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let Some(key) = key_of_old_version(certificate) else {
        return crypto::verify_tls12_signature(message, certificate, signature, algorithms);
    };
    let key = RawPublicKeyEntity::try_from(&key).map_err(|_| Error::General(UNREADABLE.to_owned()))?;
    let fitting = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signature.scheme);
    let (_, fitting) = fitting.ok_or(PeerIncompatible::NoSignatureSchemesInCommon)?;
    // A scheme of TLS 1.2 does not determine the curve: there is one algorithm for each possible curve.
    let verified = fitting
        .iter()
        .any(|algorithm| key.verify_signature(*algorithm, message, signature.signature()).is_ok());
    match verified {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(rustls::CertificateError::BadSignature.into()),
    }
}

/// Verifies a signature of TLS 1.3, for any X.509 version of the certificate.
///
/// # Errors
/// When the signature is not valid for the certificate's key.
pub fn verify_tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match key_of_old_version(certificate) {
        None => crypto::verify_tls13_signature(message, certificate, signature, algorithms),
        Some(key) => crypto::verify_tls13_signature_with_raw_key(message, &key, signature, algorithms),
    }
}

const UNREADABLE: &str = "the key of the peer's certificate cannot be read";

/// The public key of a certificate that `rustls-webpki` rejects for its X.509 version.
fn key_of_old_version<'a>(certificate: &'a CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'a>> {
    match EndEntityCert::try_from(certificate) {
        Err(webpki::Error::UnsupportedCertVersion) => {
            let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
            Some(certificate.tbs_certificate.subject_pki.raw.into())
        }
        _ => None,
    }
}
