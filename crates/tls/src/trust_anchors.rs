//! The authorities that a verifier believes.

use rustls::{Error, RootCertStore, pki_types::CertificateDer};
use std::{collections::HashSet, sync::Arc};

/// Certificates of authorities, each of which is also trusted when a server shows it as its own.
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
    /// When it cannot be read.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        Arc::make_mut(&mut self.roots).add(certificate.clone())?;
        Arc::make_mut(&mut self.certificates).insert(certificate);
        Ok(())
    }

    /// True when nobody is believed.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    pub(crate) fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        // A certificate is compared byte for byte: anything else with the same key is not what was trusted.
        self.certificates.contains(certificate)
    }
}
