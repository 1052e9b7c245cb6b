//! The trust anchors of a verifier.

use crate::{VerifyError, certificate::Certificate};
use rustls_pki_types::CertificateDer;
use std::{collections::HashMap, sync::Arc};

/// Certificates of authorities. A peer may also present any of them as its own certificate.
#[derive(Debug, Clone, Default)]
pub struct TrustAnchors {
    /// The certificates by their subjects.
    by_subject: Arc<HashMap<Box<[u8]>, Vec<CertificateDer<'static>>>>,
}

impl TrustAnchors {
    /// Adds a certificate.
    ///
    /// # Errors
    /// [`VerifyError::Malformed`].
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), VerifyError> {
        let subject = Certificate::read(&certificate)?.x509.subject().as_raw().into();
        let same_subject = Arc::make_mut(&mut self.by_subject).entry(subject).or_default();
        if !same_subject.contains(&certificate) {
            same_subject.push(certificate);
        }
        Ok(())
    }

    /// Whether there is no trust anchor: every certificate is refused.
    pub fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    /// The anchors of a subject, in the order in which they were added.
    pub(crate) fn named(&self, subject: &[u8]) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.by_subject.get(subject).into_iter().flatten()
    }

    /// Whether a certificate is itself an anchor, byte for byte: another one with the same key is not.
    pub(crate) fn contains(&self, certificate: &Certificate<'_>) -> bool {
        self.named(certificate.x509.subject().as_raw()).any(|anchor| anchor.as_ref() == certificate.der)
    }
}
