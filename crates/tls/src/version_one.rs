//! Certificates of X.509 version 1, as made by `openssl x509 -req` without extensions.

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, alg_id};
use webpki::RawPublicKeyEntity;
use x509_parser::{
    prelude::{FromDer, X509Certificate},
    x509::X509Version,
};

/// Whether this CA issued a certificate of X.509 version 1: the certificate's issuer is the CA's subject, the CA's
/// key made the signature, and the CA may sign certificates. The caller checks the validity period. `false` for
/// certificates of other versions.
///
/// Such a certificate has no extensions, so nothing in it limits its use.
pub fn is_issued_by(certificate: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    let (Ok((_, certificate)), Ok((_, authority))) =
        (X509Certificate::from_der(certificate), X509Certificate::from_der(authority))
    else {
        return false;
    };
    certificate.version() == X509Version::V1
        && certificate.issuer().as_raw() == authority.subject().as_raw()
        && may_sign_certificates(&authority)
        && is_signed_by(&certificate, authority.tbs_certificate.subject_pki.raw)
}

/// The same check as Go's: basic constraints and key usage must allow it if present, and version 3 requires basic
/// constraints.
fn may_sign_certificates(authority: &X509Certificate<'_>) -> bool {
    let Ok(constraints) = authority.basic_constraints() else { return false };
    let is_authority = match constraints {
        Some(constraints) => constraints.value.ca,
        None => authority.version() != X509Version::V3,
    };
    let Ok(usage) = authority.key_usage() else { return false };
    // Name constraints are not evaluated here, so a CA that has them is refused.
    let is_unlimited = matches!(authority.name_constraints(), Ok(None));
    is_authority && is_unlimited && usage.is_none_or(|usage| usage.value.key_cert_sign())
}

fn is_signed_by(certificate: &X509Certificate<'_>, key: &[u8]) -> bool {
    let key = SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    let (signed, signature) = (certificate.tbs_certificate.as_ref(), &certificate.signature_value.data);
    // The algorithm is in the certificate twice; the signed one must match the other.
    if certificate.signature_algorithm != certificate.tbs_certificate.signature {
        return false;
    }
    let Some(name) = algorithm_id(certificate) else { return false };
    let mut fitting = crate::signature_algorithms().iter().filter(|known| known.signature_alg_id() == name);
    fitting.any(|algorithm| key.verify_signature(*algorithm, signed, signature).is_ok())
}

/// The signature algorithm of a certificate; `None` for obsolete ones.
fn algorithm_id(certificate: &X509Certificate<'_>) -> Option<rustls::pki_types::AlgorithmIdentifier> {
    let name = certificate.signature_algorithm.algorithm.to_id_string();
    Some(match name.as_str() {
        "1.2.840.113549.1.1.11" => alg_id::RSA_PKCS1_SHA256,
        "1.2.840.113549.1.1.12" => alg_id::RSA_PKCS1_SHA384,
        "1.2.840.113549.1.1.13" => alg_id::RSA_PKCS1_SHA512,
        "1.2.840.10045.4.3.2" => alg_id::ECDSA_SHA256,
        "1.2.840.10045.4.3.3" => alg_id::ECDSA_SHA384,
        "1.2.840.10045.4.3.4" => alg_id::ECDSA_SHA512,
        "1.3.101.112" => alg_id::ED25519,
        _ => return None,
    })
}
