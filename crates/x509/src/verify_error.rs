//! Why a certificate is refused.

use crate::SignatureError;
use jiff::Timestamp;
use pintle_go_forms::quote;
use std::fmt;

/// The error of a certificate. The texts are those of Go's `crypto/x509`, which users of Kubernetes know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// A certificate cannot be read.
    Malformed,
    /// There are more certificates than may be presented.
    TooLong,
    /// A critical extension is not understood.
    UnhandledCriticalExtension,
    /// The time, in seconds since 1970, is before or after the validity period.
    Expired {
        /// The time of the verification.
        now: i64,
        /// The bound that is not kept.
        bound: i64,
    },
    /// The certificate is not for the name of the peer; why.
    HostName(String),
    /// The certificate has the name of the peer as its common name only, which was accepted in the past.
    LegacyCommonName,
    /// No trust anchor issued it. The first candidate that failed is named, and why it did.
    UnknownAuthority(Option<(Box<VerifyError>, String)>),
    /// An authority may not issue certificates.
    CannotSign,
    /// The same for an intermediate of an old version, which cannot say that it may.
    NotAuthorizedToSign,
    /// A signature does not count.
    Signature(SignatureError),
    /// There are more authorities in the chain than one of them allows.
    TooManyIntermediates,
    /// The certificate, or one of an authority, is not for this usage.
    IncompatibleUsage,
    /// An authority is not authorized for a name; why.
    NameConstraint(String),
    /// The limit on the signatures that are verified for one chain was reached.
    SignatureLimit,
}

impl VerifyError {
    /// Whether the certificate was signed with SHA-1, which was accepted in the past.
    pub fn is_of_sha1(&self) -> bool {
        match self {
            VerifyError::UnknownAuthority(Some((why, _))) => why.is_of_sha1(),
            VerifyError::Signature(SignatureError::Insecure(name)) => name.contains("SHA1"),
            _ => false,
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VerifyError::Signature(why) => return why.fmt(f),
            VerifyError::Expired { now, bound } => {
                let side = if now < bound { "before" } else { "after" };
                let time = |seconds: i64| Timestamp::from_second(seconds).unwrap_or_default();
                return write!(
                    f,
                    "x509: certificate has expired or is not yet valid: current time {} is {side} {}",
                    time(*now),
                    time(*bound)
                );
            }
            VerifyError::HostName(why) => return write!(f, "x509: {why}"),
            VerifyError::UnknownAuthority(Some((why, name))) => {
                return write!(
                    f,
                    "x509: certificate signed by unknown authority (possibly because of {} while trying to verify \
                     candidate authority certificate {})",
                    quote(&why.to_string()),
                    quote(name)
                );
            }
            VerifyError::NameConstraint(why) => {
                return write!(
                    f,
                    "x509: a root or intermediate certificate is not authorized to sign for this name: {why}"
                );
            }
            VerifyError::LegacyCommonName => {
                "x509: certificate relies on legacy Common Name field, use SANs instead"
            }
            VerifyError::Malformed => "x509: malformed certificate",
            VerifyError::TooLong => "x509: too many certificates",
            VerifyError::UnhandledCriticalExtension => "x509: unhandled critical extension",
            VerifyError::UnknownAuthority(None) => "x509: certificate signed by unknown authority",
            VerifyError::CannotSign => {
                "x509: invalid signature: parent certificate cannot sign this kind of certificate"
            }
            VerifyError::NotAuthorizedToSign => {
                "x509: certificate is not authorized to sign other certificates"
            }
            VerifyError::TooManyIntermediates => "x509: too many intermediates for path length constraint",
            VerifyError::IncompatibleUsage => "x509: certificate specifies an incompatible key usage",
            VerifyError::SignatureLimit => {
                "x509: signature check attempts limit reached while verifying certificate chain"
            }
        })
    }
}

impl std::error::Error for VerifyError {}

impl From<SignatureError> for VerifyError {
    fn from(why: SignatureError) -> VerifyError {
        VerifyError::Signature(why)
    }
}
