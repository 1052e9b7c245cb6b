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
use rustls_pki_types::{CertificateDer, UnixTime};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;
use webpki::{EndEntityCert, KeyUsage};
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
/// The object identifier of `anyExtendedKeyUsage`, 2.5.29.37.0.
const ANY_EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
/// The limit on the length of a presented chain: path building takes time.
const MAX_CERTIFICATES: usize = 16;

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

/// Verifies a chain; also returns the time when its first certificate expires, in seconds since 1970.
fn look<T>(
    certificates: &[CertificateDer<'static>],
    authorities: &Authorities,
    now: Duration,
    read: impl FnOnce(&X509Certificate<'_>) -> Result<T, InvalidCredentials>,
) -> Result<(T, u64), InvalidCredentials> {
    let unreadable = || InvalidCredentials::new("the client's certificate cannot be read".to_owned());
    let (leaf, intermediates) = certificates.split_first().ok_or_else(unreadable)?;
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| unreadable())?;
    if intermediates.len() >= MAX_CERTIFICATES {
        return Err(refused(&parsed, "too many certificates"));
    }
    let end = chain_end(leaf, intermediates, authorities, now).map_err(|why| refused(&parsed, why))?;
    Ok((read(&parsed)?, end))
}

/// Builds a path to a trust anchor; returns the time when the first certificate expires, in seconds since 1970.
fn chain_end(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    authorities: &Authorities,
    now: Duration,
) -> Result<u64, &'static str> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let is_valid = |(from, to): (i64, i64)| from <= seconds && seconds <= to;
    let certificate = match EndEntityCert::try_from(leaf) {
        Ok(certificate) => certificate,
        Err(webpki::Error::UnsupportedCertVersion) => return end_of_version_one(leaf, authorities, is_valid),
        Err(error) => return Err(reason(error)),
    };
    let check_anchor = |path: &webpki::VerifiedPath<'_>| match authorities.validity(path.anchor()) {
        Some(validity) if is_valid(validity) => Ok(()),
        _ => Err(webpki::Error::CertExpired {
            time: UnixTime::since_unix_epoch(now),
            not_after: UnixTime::since_unix_epoch(now),
        }),
    };
    let verify = |usage: KeyUsage| {
        certificate.verify_for_usage(
            pintle_tls::signature_algorithms(),
            authorities.anchors(),
            intermediates,
            UnixTime::since_unix_epoch(now),
            usage,
            None,
            Some(&check_anchor),
        )
    };
    let path = match verify(KeyUsage::client_auth()) {
        // A certificate for any usage is one for clients.
        Err(webpki::Error::RequiredEkuNotFoundContext(_)) => {
            verify(KeyUsage::required_if_present(ANY_EXTENDED_KEY_USAGE))
        }
        verified => verified,
    };
    let path = path.map_err(reason)?;
    let mut end = authorities.validity(path.anchor()).map_or(0, |(_, not_after)| not_after);
    // All presented certificates count, whether they are on the path or not: the cache time needs no precision.
    for shown in std::iter::once(leaf).chain(intermediates) {
        if let Ok((_, parsed)) = X509Certificate::from_der(shown) {
            end = end.min(parsed.validity().not_after.timestamp());
        }
    }
    Ok(u64::try_from(end).unwrap_or_default())
}

/// As [`chain_end`], for an X.509 version 1 leaf, which a trust anchor itself must have issued.
fn end_of_version_one(
    leaf: &CertificateDer<'_>,
    authorities: &Authorities,
    is_valid: impl Fn((i64, i64)) -> bool,
) -> Result<u64, &'static str> {
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| "x509: the certificate is not valid")?;
    let validity = (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
    let issuers = authorities.certificates().iter().zip(authorities.anchors());
    let mut issuers =
        issuers.filter(|(certificate, _)| pintle_tls::is_issued_by(leaf, certificate)).peekable();
    if issuers.peek().is_none() {
        return Err("x509: certificate signed by unknown authority");
    }
    let ends =
        issuers.filter_map(|(_, anchor)| authorities.validity(anchor)).filter(|validity| is_valid(*validity));
    match ends.map(|(_, not_after)| not_after).max() {
        Some(end) if is_valid(validity) => Ok(u64::try_from(end.min(validity.1)).unwrap_or_default()),
        _ => Err("x509: certificate has expired or is not yet valid"),
    }
}

/// Go's message for an error, where it has one.
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
        webpki::Error::UnsupportedCertVersion => "x509: an intermediate certificate has a version below 3",
        webpki::Error::CaUsedAsEndEntity => "x509: a certificate of an authority is not one of a client",
        _ => "x509: the certificate is not valid",
    }
}

/// The error of a certificate. It is identified by its serial number, since its names are not verified.
fn refused(certificate: &X509Certificate<'_>, why: &str) -> InvalidCredentials {
    let serial = &certificate.tbs_certificate.serial;
    InvalidCredentials::new(format!("verifying certificate SN={serial} failed: {why}"))
}
