//! Verifies client certificates
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>).
//!
//! The TLS handshake has proved only that the client holds the certificate's key. Certificates are verified for each
//! request, so that a replaced trust anchor takes effect at once, on open connections as well.

use crate::{
    ca_bundle::{Authorities, CaBundle},
    expiring_cache::{ExpiringCache, KeyMaker},
};
use pintle_auth::authn::InvalidCredentials;
use pintle_x509::{Usage, VerifyError};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies client certificates against a bundle. Results are cached while the same authorities are in force, and at
/// most until the certificates expire: every request of a connection presents the same certificates, to the verifiers
/// of clients and of front proxies alike.
pub(crate) struct CertificateVerifier<T> {
    bundle: Arc<CaBundle>,
    keys: KeyMaker,
    /// The results, with the generation of the authorities.
    found: ExpiringCache<(u64, Found<T>)>,
}

type Found<T> = Result<Arc<T>, InvalidCredentials>;

/// The capacity of the cache, in certificates.
const REMEMBERED: usize = 8192;
/// How long valid and invalid results are cached at most; an invalid certificate may become valid.
const MEMORY: Duration = Duration::from_secs(600);
const MEMORY_OF_WRONG: Duration = Duration::from_secs(10);

impl<T> CertificateVerifier<T> {
    pub(crate) fn new(bundle: Arc<CaBundle>) -> CertificateVerifier<T> {
        CertificateVerifier { bundle, keys: KeyMaker::new(), found: ExpiringCache::new(REMEMBERED) }
    }

    /// Verifies a chain, leaf first, and parses the leaf. `None` when the client presented no certificate.
    pub(crate) fn verify(
        &self,
        certificates: &[CertificateDer<'static>],
        read: impl FnOnce(&X509Certificate<'_>) -> Result<T, InvalidCredentials>,
    ) -> Result<Option<Arc<T>>, InvalidCredentials> {
        if certificates.is_empty() {
            return Ok(None);
        }
        let authorities = self.bundle.current();
        let key = self.keys.key(certificates.iter().map(|certificate| certificate.as_ref()));
        if let Some((generation, found)) = self.found.get(&key)
            && generation == authorities.generation()
        {
            return found.map(Some);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (found, good_for) = match look(certificates, &authorities, now, read) {
            Ok((value, end)) => {
                let left = Duration::from_secs(end.saturating_sub(now.as_secs()));
                (Ok(Arc::new(value)), left.min(MEMORY))
            }
            Err(error) => (Err(error), MEMORY_OF_WRONG),
        };
        self.found.insert(key, (authorities.generation(), found.clone()), Instant::now() + good_for);
        found.map(Some)
    }
}

/// Verifies a chain; also returns the time when it expires, in seconds since 1970.
fn look<T>(
    certificates: &[CertificateDer<'static>],
    authorities: &Authorities,
    now: Duration,
    read: impl FnOnce(&X509Certificate<'_>) -> Result<T, InvalidCredentials>,
) -> Result<(T, u64), InvalidCredentials> {
    let unreadable = || InvalidCredentials::new("the client's certificate cannot be read".to_owned());
    let leaf = certificates.first().ok_or_else(unreadable)?;
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| unreadable())?;
    let verified =
        authorities.anchors().verify(certificates, None, Usage::Client, UnixTime::since_unix_epoch(now));
    let end = verified.map_err(|why| refused(&parsed, &why))?;
    Ok((read(&parsed)?, u64::try_from(end).unwrap_or_default()))
}

/// The error of a certificate. It is identified by its serial number, since its names are not verified.
fn refused(certificate: &X509Certificate<'_>, why: &VerifyError) -> InvalidCredentials {
    let serial = &certificate.tbs_certificate.serial;
    InvalidCredentials::new(format!("verifying certificate SN={serial} failed: {why}"))
}
