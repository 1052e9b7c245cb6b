//! Builds and verifies chains of certificates by the rules of Go's `crypto/x509` (RFC 5280, section 6, with Go's choices).
//!
//! Unlike `rustls-webpki`, Go honors what a trust anchor says of itself (its validity period, usages and path length) and
//! the key usage of authorities, and accepts the certificate of an authority, or a trust anchor itself, as that of a peer.
//!
//! Policies are not evaluated: a chain that demands an explicit policy is refused.

use crate::{Signed, TrustAnchors, VerifyError, certificate::Certificate, host_name::check_host_name};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// The purpose that a certificate is verified for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// A client proves its identity.
    Client,
    /// A server proves its identity.
    Server,
}

/// The limit on the number of presented certificates.
const MAX_CERTIFICATES: usize = 16;
/// The limit on the signatures that are verified for one chain.
const MAX_SIGNATURES: usize = 100;

impl TrustAnchors {
    /// Verifies a chain, the peer's own certificate first: one of these anchors issued it, if need be through some of
    /// the others, or is it, byte for byte. A server's certificate is for `name`.
    ///
    /// Returns the time until which the chain is valid, in seconds since 1970. At most 100 signatures are verified,
    /// whatever is presented.
    ///
    /// # Errors
    /// The reason of the refusal, by the order of Go's checks.
    pub fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        name: Option<&ServerName<'_>>,
        usage: Usage,
        now: UnixTime,
    ) -> Result<i64, VerifyError> {
        if chain.len() > MAX_CERTIFICATES {
            return Err(VerifyError::TooLong);
        }
        let presented = chain.iter().map(Certificate::read).collect::<Result<Vec<_>, _>>()?;
        let Some((leaf, intermediates)) = presented.split_first() else {
            return Err(VerifyError::Malformed);
        };
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        check(leaf, &[], now)?;
        if let Some(name) = name {
            check_host_name(leaf, name)?;
        }
        let mut search =
            Search { anchors: self, intermediates, usage, now, signatures: 0, refused: Refused::default() };
        let path = vec![leaf];
        let found = match self.contains(leaf) {
            true => search.judge(&path).ok_or(None),
            false => search.extend(&path).map_err(Some),
        };
        match found {
            Ok(end) => Ok(end),
            Err(why) => Err(search.refused.error().or(why).unwrap_or(VerifyError::UnknownAuthority(None))),
        }
    }
}

/// The search for a valid chain.
struct Search<'a> {
    anchors: &'a TrustAnchors,
    intermediates: &'a [Certificate<'a>],
    usage: Usage,
    now: i64,
    /// The number of signatures that were verified.
    signatures: usize,
    refused: Refused,
}

/// Why chains to trust anchors were refused.
#[derive(Default)]
struct Refused {
    constraint: Option<VerifyError>,
    usage: bool,
}

impl Refused {
    fn error(self) -> Option<VerifyError> {
        self.constraint.or_else(|| self.usage.then_some(VerifyError::IncompatibleUsage))
    }
}

impl Search<'_> {
    /// Searches for an authority of the last certificate of a path, up to a trust anchor; returns the end of the
    /// validity of the first valid chain.
    fn extend(&mut self, path: &[&Certificate<'_>]) -> Result<i64, VerifyError> {
        let Some(child) = path.last() else { return Err(VerifyError::UnknownAuthority(None)) };
        let (mut hint, mut error) = (None, None);
        let (anchors, intermediates) = (self.anchors, self.intermediates);
        let roots: Vec<Certificate<'_>> = anchors
            .named(child.x509.issuer().as_raw())
            .filter_map(|der| Certificate::read(der).ok())
            .collect();
        let issuers = intermediates
            .iter()
            .filter(|candidate| candidate.x509.subject().as_raw() == child.x509.issuer().as_raw());
        let candidates = by_key(child, roots.iter()).into_iter().map(|root| (root, true));
        let others = by_key(child, issuers).into_iter().map(|intermediate| (intermediate, false));
        for (candidate, is_anchor) in candidates.chain(others) {
            self.signatures += 1;
            if self.signatures > MAX_SIGNATURES {
                return Err(VerifyError::SignatureLimit);
            }
            if path.iter().any(|other| is_same_authority(other, candidate)) {
                continue;
            }
            let fits = check_issued_by(child, candidate).map_err(|why| (why, false)).and_then(|()| {
                check(candidate, path, self.now).map_err(|why| (why, true))?;
                match is_anchor || matches!(candidate.extensions.basic, Some((true, _))) {
                    true => Ok(()),
                    false => Err((VerifyError::NotAuthorizedToSign, true)),
                }
            });
            match fits {
                Ok(()) => {
                    let longer: Vec<_> = path.iter().copied().chain([candidate]).collect();
                    match is_anchor {
                        true => match self.judge(&longer) {
                            Some(end) => return Ok(end),
                            None => error = None,
                        },
                        false => match self.extend(&longer) {
                            Err(why) if why != VerifyError::SignatureLimit => error = Some(why),
                            found => return found,
                        },
                    }
                }
                Err((why, is_final)) => {
                    hint.get_or_insert_with(|| (Box::new(why.clone()), candidate.title()));
                    if is_final {
                        error = Some(why);
                    }
                }
            }
        }
        Err(error.unwrap_or(VerifyError::UnknownAuthority(hint)))
    }

    /// Verifies a chain as a whole; returns the end of its validity.
    fn judge(&mut self, chain: &[&Certificate<'_>]) -> Option<i64> {
        let is_for = |certificate: &&Certificate<'_>| match certificate.extensions.usages {
            None => true,
            Some(usages) => {
                usages.any
                    || match self.usage {
                        Usage::Client => usages.client,
                        Usage::Server => usages.server,
                    }
            }
        };
        if !chain.iter().all(is_for) {
            self.refused.usage = true;
            return None;
        }
        if let Err(why) = check_name_constraints(chain) {
            self.refused.constraint.get_or_insert(VerifyError::NameConstraint(why));
            return None;
        }
        chain.iter().map(|certificate| certificate.validity().1).min()
    }
}

/// Checks what a certificate says of itself, as the issuer of the last of a path.
fn check(certificate: &Certificate<'_>, path: &[&Certificate<'_>], now: i64) -> Result<(), VerifyError> {
    if certificate.extensions.has_unknown_demands {
        return Err(VerifyError::UnhandledCriticalExtension);
    }
    let (from, to) = certificate.validity();
    let bound = if now < from { Some(from) } else { (now > to).then_some(to) };
    if let Some(bound) = bound {
        return Err(VerifyError::Expired { now, bound });
    }
    let intermediates = path.len().saturating_sub(1);
    match certificate.extensions.basic {
        Some((_, Some(limit))) if intermediates > usize::try_from(limit).unwrap_or(usize::MAX) => {
            Err(VerifyError::TooManyIntermediates)
        }
        _ => Ok(()),
    }
}

/// Checks that `authority` may issue certificates, and signed this one.
fn check_issued_by(certificate: &Certificate<'_>, authority: &Certificate<'_>) -> Result<(), VerifyError> {
    let is_authority = match authority.extensions.basic {
        Some((is_authority, _)) => is_authority,
        None => !authority.is_version_three(),
    };
    if !is_authority || authority.extensions.may_sign == Some(false) {
        return Err(VerifyError::CannotSign);
    }
    let signed = Signed {
        message: certificate.x509.tbs_certificate.as_ref(),
        algorithm: &certificate.x509.signature_algorithm,
        signature: &certificate.x509.signature_value.data,
    };
    Ok(signed.check(&authority.x509.tbs_certificate.subject_pki, false)?)
}

/// Checks the names of each certificate of a chain, the peer's first, against the constraints of all above it.
fn check_name_constraints(chain: &[&Certificate<'_>]) -> Result<(), String> {
    for (index, certificate) in chain.iter().enumerate() {
        let Some(names) = &certificate.extensions.names else { continue };
        for constraints in
            chain.iter().skip(index + 1).filter_map(|above| above.extensions.constraints.as_ref())
        {
            constraints.check(names)?;
        }
    }
    Ok(())
}

/// Orders the candidates for an authority by how well their key fits what the certificate says of it.
fn by_key<'c, 'd: 'c>(
    child: &Certificate<'_>,
    candidates: impl Iterator<Item = &'c Certificate<'d>>,
) -> Vec<&'c Certificate<'d>> {
    let mut candidates: Vec<_> = candidates.collect();
    candidates.sort_by_key(|candidate| {
        let (own, named) = (candidate.extensions.subject_key, child.extensions.authority_key);
        match own == named {
            true => 0,
            false if own.is_empty() != named.is_empty() => 1,
            false => 2,
        }
    });
    candidates
}

/// Whether two certificates are of the same authority: one is not needed above the other.
fn is_same_authority(one: &Certificate<'_>, other: &Certificate<'_>) -> bool {
    let [own, theirs] =
        [one, other].map(|certificate| certificate.extensions.names.as_ref().map(|names| names.value));
    one.x509.subject().as_raw() == other.x509.subject().as_raw()
        && one.x509.tbs_certificate.subject_pki.raw == other.x509.tbs_certificate.subject_pki.raw
        && own == theirs
}

#[cfg(test)]
mod tests;
