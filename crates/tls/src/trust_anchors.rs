//! The trust anchors of a verifier.

use rustls::{Error, RootCertStore, pki_types::CertificateDer};
use std::{collections::HashSet, sync::Arc};

/// CA certificates; a server may also present any of them as its own certificate.
#[derive(Debug, Clone)]
pub struct TrustAnchors {
    pub(crate) roots: Arc<RootCertStore>,
    certificates: Arc<HashSet<CertificateDer<'static>>>,
}

impl Default for TrustAnchors {
    fn default() -> TrustAnchors {
        TrustAnchors { roots: Arc::new(RootCertStore::empty()), certificates: Arc::default() }
    }
}

impl TrustAnchors {
    /// Adds a certificate.
    ///
    /// # Errors
    /// When the certificate is malformed.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        Arc::make_mut(&mut self.roots).add(certificate.clone())?;
        Arc::make_mut(&mut self.certificates).insert(certificate);
        Ok(())
    }

    /// Whether there is no trust anchor: every certificate is refused.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    pub(crate) fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        // Compared byte for byte: another certificate with the same key is not trusted.
        self.certificates.contains(certificate)
    }
}
