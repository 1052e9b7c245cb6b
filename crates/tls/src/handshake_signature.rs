//! Handshake signatures: prove that a peer has the private key of its certificate. The certificate itself is verified
//! elsewhere, so that its key is all that counts here.

use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerIncompatible,
    client::danger::HandshakeSignatureValid,
    crypto::{self, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, SubjectPublicKeyInfoDer},
};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies a signature of TLS 1.2.
///
/// # Errors
/// When the signature is not valid for the certificate's key.
pub fn verify_tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = key_of(certificate)?;
    let key = RawPublicKeyEntity::try_from(&key).map_err(|_| CertificateError::BadEncoding)?;
    let fitting = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signature.scheme);
    let (_, fitting) = fitting.ok_or(PeerIncompatible::NoSignatureSchemesInCommon)?;
    // A scheme of TLS 1.2 does not determine the curve: there is one algorithm for each possible curve.
    let verified = fitting
        .iter()
        .any(|algorithm| key.verify_signature(*algorithm, message, signature.signature()).is_ok());
    match verified {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

/// Verifies a signature of TLS 1.3.
///
/// # Errors
/// When the signature is not valid for the certificate's key.
pub fn verify_tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = key_of(certificate)?;
    crypto::verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
}

/// The public key of a certificate of any version.
pub(crate) fn key_of<'a>(certificate: &'a CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'a>, Error> {
    let (_, certificate) =
        X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    Ok(certificate.tbs_certificate.subject_pki.raw.into())
}
