//! The trust anchors for webhooks.

use crate::ConfigError;
use pintle_x509::TrustAnchors;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{env, sync::LazyLock};

/// The places of the system's trusted certificates, in the order of Go's search.
const FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates of a bundle, or the system's when it is blank.
pub(crate) fn roots(ca_bundle: &[u8]) -> Result<TrustAnchors, ConfigError> {
    if ca_bundle.trim_ascii().is_empty() {
        return Ok(SYSTEM.clone());
    }
    let mut roots = TrustAnchors::default();
    let mut why = "unable to parse bytes as PEM block".to_owned();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        match certificate.map_err(|error| error.to_string()) {
            Ok(certificate) => {
                if let Err(error) = roots.add(certificate) {
                    why = format!("failed to parse certificate: {error}");
                }
            }
            Err(error) => why = error,
        }
    }
    match roots.is_empty() {
        true => Err(ConfigError::Roots(why)),
        false => Ok(roots),
    }
}

/// Read once; empty on a system without trusted certificates.
static SYSTEM: LazyLock<TrustAnchors> = LazyLock::new(|| {
    let own = env::var("SSL_CERT_FILE").ok();
    let files = own.iter().map(String::as_str).chain(FILES);
    let mut roots = TrustAnchors::default();
    for file in files {
        let Ok(certificates) = CertificateDer::pem_file_iter(file) else { continue };
        for certificate in certificates.flatten() {
            // Other certificates of the file may be valid.
            let _ = roots.add(certificate);
        }
        if !roots.is_empty() {
            break;
        }
    }
    roots
});
