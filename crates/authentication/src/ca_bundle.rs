//! Trust anchors that can be replaced while they are in use.

use arc_swap::ArcSwap;
use pintle_x509::TrustAnchors;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The reason why a text is not a bundle of certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaBundleError {
    /// The text has no certificate.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    Empty,
    /// A PEM block is not a valid certificate.
    #[error("{0}")]
    Malformed(String),
}

/// The trust anchors in force at one time.
#[derive(Debug)]
pub struct Authorities {
    pem: String,
    certificates: Vec<CertificateDer<'static>>,
    anchors: TrustAnchors,
    generation: u64,
}

impl Authorities {
    fn parse(pem: &str, generation: u64) -> Result<Authorities, CaBundleError> {
        let mut certificates = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            certificates.push(certificate.map_err(|error| CaBundleError::Malformed(error.to_string()))?);
        }
        if certificates.is_empty() {
            return Err(CaBundleError::Empty);
        }
        let mut anchors = TrustAnchors::default();
        for certificate in &certificates {
            let added = anchors.add(certificate.clone());
            added.map_err(|error| CaBundleError::Malformed(error.to_string()))?;
        }
        Ok(Authorities { pem: pem.to_owned(), certificates, anchors, generation })
    }

    /// The certificates as PEM, as they were given.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The certificates, in the order of the PEM text.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    pub(crate) fn anchors(&self) -> &TrustAnchors {
        &self.anchors
    }

    /// A number that differs between successive contents of the bundle.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}

/// A named bundle of trust anchors. Authorities that were read from it never change; later reads return the new ones.
#[derive(Debug)]
pub struct CaBundle {
    name: String,
    current: ArcSwap<Authorities>,
    next_generation: AtomicU64,
}

impl CaBundle {
    /// A bundle of PEM certificates.
    ///
    /// # Errors
    /// When the text has no certificate, or an invalid one.
    pub fn new(name: impl Into<String>, pem: &str) -> Result<CaBundle, CaBundleError> {
        let current = ArcSwap::from_pointee(Authorities::parse(pem, 0)?);
        Ok(CaBundle { name: name.into(), current, next_generation: AtomicU64::new(1) })
    }

    /// The bundle's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The authorities in force.
    pub fn current(&self) -> Arc<Authorities> {
        self.current.load_full()
    }

    /// Replaces the certificates; returns whether the new ones differ.
    ///
    /// # Errors
    /// When the text has no certificate, or an invalid one; the old ones stay in force.
    pub fn replace(&self, pem: &str) -> Result<bool, CaBundleError> {
        if self.current.load().pem == pem {
            return Ok(false);
        }
        let authorities = Authorities::parse(pem, self.next_generation.fetch_add(1, Ordering::Relaxed))?;
        self.current.store(Arc::new(authorities));
        tracing::info!(bundle = %self.name, "the certificates of authorities were exchanged");
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Authority;

    #[test]
    fn what_is_no_bundle_is_refused_and_changes_nothing() {
        let one = Authority::new("one").pem();
        let bundle = CaBundle::new("test", &one).unwrap();
        assert_eq!(bundle.replace("").unwrap_err(), CaBundleError::Empty);
        let cut = one.replace("\n-----END", "A\n-----END");
        assert!(matches!(bundle.replace(&cut).unwrap_err(), CaBundleError::Malformed(_)));
        assert_eq!(bundle.current().pem(), one);
        assert!(!bundle.replace(&one).unwrap());
        let two = format!("{one}{}", Authority::new("two").pem());
        assert!(bundle.replace(&two).unwrap());
        assert_eq!(bundle.current().certificates().len(), 2);
    }
}
