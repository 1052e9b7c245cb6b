//! Whether a client's certificate is what it says
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>).
//!
//! The TLS layer has made sure that the client holds the certificate's key, and no more: whose certificate is believed is
//! asked at each request, so that an exchanged authority counts at once, on open connections as well.

use crate::{
    authn::InvalidCredentials,
    ca_bundle::{Authorities, CaBundle},
    expiring_cache::{CacheKey, ExpiringCache, KeyMaker},
};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;
use webpki::{EndEntityCert, KeyUsage};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Verifies certificates of clients against a bundle. What was verified is remembered for as long as the same authorities
/// are in force and no certificate has expired: a connection's requests show the same certificate each.
pub(crate) struct CertificateVerifier<T> {
    bundle: Arc<CaBundle>,
    keys: KeyMaker,
    /// With the generation of the authorities.
    verified: ExpiringCache<(u64, Arc<T>)>,
}

/// How many certificates are remembered, and how long at most.
const REMEMBERED: usize = 8192;
const MEMORY: Duration = Duration::from_secs(600);
/// How many certificates a client may show. Finding a way through them takes time.
const MAX_CERTIFICATES: usize = 16;

impl<T> CertificateVerifier<T> {
    pub(crate) fn new(bundle: Arc<CaBundle>) -> CertificateVerifier<T> {
        CertificateVerifier { bundle, keys: KeyMaker::new(), verified: ExpiringCache::new(REMEMBERED) }
    }

    /// Verifies certificates, leaf first, and reads the leaf. Nothing is known of a client that shows none.
    pub(crate) fn verify(
        &self,
        certificates: &[CertificateDer<'static>],
        read: impl FnOnce(&X509Certificate<'_>) -> Result<T, InvalidCredentials>,
    ) -> Result<Option<Arc<T>>, InvalidCredentials> {
        let Some((leaf, intermediates)) = certificates.split_first() else { return Ok(None) };
        let authorities = self.bundle.current();
        let key: CacheKey = self.keys.key([leaf.as_ref()]);
        if let Some((generation, value)) = self.verified.get(&key)
            && generation == authorities.generation()
        {
            return Ok(Some(value));
        }
        let (_, parsed) = X509Certificate::from_der(leaf)
            .map_err(|_| InvalidCredentials("the client's certificate cannot be read".to_owned()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if intermediates.len() >= MAX_CERTIFICATES {
            return Err(refused(&parsed, "too many certificates"));
        }
        let end = chain_end(leaf, intermediates, &authorities, now).map_err(|why| refused(&parsed, why))?;
        let value = Arc::new(read(&parsed)?);
        let left = Duration::from_secs(end.saturating_sub(now.as_secs()));
        let verified = (authorities.generation(), value.clone());
        self.verified.insert(key, verified, Instant::now() + left.min(MEMORY));
        Ok(Some(value))
    }
}

/// Finds a chain to an authority; says when, in seconds since 1970, the first of its certificates expires.
fn chain_end(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    authorities: &Authorities,
    now: Duration,
) -> Result<u64, &'static str> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let is_valid = |(from, to): (i64, i64)| from <= seconds && seconds <= to;
    let certificate = EndEntityCert::try_from(leaf).map_err(reason)?;
    let path = certificate
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            authorities.anchors(),
            intermediates,
            UnixTime::since_unix_epoch(now),
            KeyUsage::client_auth(),
            None,
            Some(&|path| match authorities.validity(path.anchor()) {
                Some(validity) if is_valid(validity) => Ok(()),
                _ => Err(webpki::Error::CertExpired {
                    time: UnixTime::since_unix_epoch(now),
                    not_after: UnixTime::since_unix_epoch(now),
                }),
            }),
        )
        .map_err(reason)?;
    let mut end = authorities.validity(path.anchor()).map_or(0, |(_, not_after)| not_after);
    // All that were shown count: which of them the chain is made of does not matter for how long it is remembered.
    for shown in std::iter::once(leaf).chain(intermediates) {
        if let Ok((_, parsed)) = X509Certificate::from_der(shown) {
            end = end.min(parsed.validity().not_after.timestamp());
        }
    }
    Ok(u64::try_from(end).unwrap_or_default())
}

/// Go's words for the same, where it has some.
fn reason(error: webpki::Error) -> &'static str {
    match error {
        webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
            "x509: certificate signed by unknown authority"
        }
        webpki::Error::CertExpired { .. } | webpki::Error::CertNotValidYet { .. } => {
            "x509: certificate has expired or is not yet valid"
        }
        webpki::Error::RequiredEkuNotFoundContext(_) => {
            "x509: certificate specifies an incompatible key usage"
        }
        webpki::Error::UnsupportedCertVersion => "x509: only certificates of version 3 are supported",
        webpki::Error::CaUsedAsEndEntity => "x509: a certificate of an authority is not one of a client",
        _ => "x509: the certificate is not valid",
    }
}

/// Which certificate it is about: its number. Names in it were not verified.
fn refused(certificate: &X509Certificate<'_>, why: &str) -> InvalidCredentials {
    let serial = &certificate.tbs_certificate.serial;
    InvalidCredentials(format!("verifying certificate SN={serial} failed: {why}"))
}
