//! Certificates of X.509 version 1, as `openssl x509 -req` makes them unless it is given extensions.

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, alg_id};
use webpki::RawPublicKeyEntity;
use x509_parser::{
    prelude::{FromDer, X509Certificate},
    x509::X509Version,
};

/// Whether a certificate of X.509 version 1 was issued by this authority: its issuer is the authority's subject and its
/// signature is by the authority's key, which may sign certificates. Validity in time is for the caller to judge. False for
/// certificates of other versions.
///
/// Such a certificate has no extensions, so there is nothing in it that could limit its use.
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

/// As Go has it: constraints and usages that are there must allow it, and version 3 needs constraints.
fn may_sign_certificates(authority: &X509Certificate<'_>) -> bool {
    let Ok(constraints) = authority.basic_constraints() else { return false };
    let is_authority = match constraints {
        Some(constraints) => constraints.value.ca,
        None => authority.version() != X509Version::V3,
    };
    let Ok(usage) = authority.key_usage() else { return false };
    // What names an authority may speak for cannot be judged here.
    let is_unlimited = matches!(authority.name_constraints(), Ok(None));
    is_authority && is_unlimited && usage.is_none_or(|usage| usage.value.key_cert_sign())
}

fn is_signed_by(certificate: &X509Certificate<'_>, key: &[u8]) -> bool {
    let key = SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    let (signed, signature) = (certificate.tbs_certificate.as_ref(), &certificate.signature_value.data);
    // The algorithm is named twice, and the name that is signed counts.
    if certificate.signature_algorithm != certificate.tbs_certificate.signature {
        return false;
    }
    let Some(name) = algorithm_id(certificate) else { return false };
    let mut fitting = webpki::ALL_VERIFICATION_ALGS.iter().filter(|known| known.signature_alg_id() == name);
    fitting.any(|algorithm| key.verify_signature(*algorithm, signed, signature).is_ok())
}

/// The algorithm of a certificate's signature; none for those that nobody should use any more.
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
