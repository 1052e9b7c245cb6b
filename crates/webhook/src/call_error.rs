//! What goes wrong with a webhook before it has answered.

use std::fmt;
use std::io;

/// Why a webhook cannot be called at all.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is none.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The certificates cannot be read.
    #[error("unable to load root certificates: {0}")]
    Roots(String),
    /// Who asks cannot be told.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// There is no TLS as it would have to be.
    #[error("{0}")]
    Tls(String),
}

/// Why a call had no answer. Prints as Go's HTTP client tells it.
#[derive(Debug)]
pub struct CallError {
    url: String,
    cause: Cause,
}

/// The cause of a [`CallError`].
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Cause {
    /// The service cannot be resolved.
    Resolve(String),
    /// No host has the name.
    Lookup(String),
    /// The connection is refused, or cannot be made.
    Dial { address: String, error: io::Error },
    /// The webhook's certificate is not accepted, or TLS fails otherwise.
    Tls(io::Error),
    /// The connection ends before there is an answer.
    Closed,
    /// The connection was reset.
    Reset,
    /// The time is over.
    Timeout,
    /// The answer has more bytes than it may.
    TooLarge(usize),
    /// Anything else.
    Other(String),
}

impl CallError {
    pub(crate) fn new(url: &str, cause: Cause) -> CallError {
        CallError { url: url.to_owned(), cause }
    }

    /// Whether the time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::Timeout)
    }

    /// Whether the same call may succeed a little later: the connection was there and was lost.
    pub fn is_transient(&self) -> bool {
        match &self.cause {
            Cause::Reset => true,
            Cause::Dial { error, .. } | Cause::Tls(error) => error.kind() == io::ErrorKind::ConnectionReset,
            _ => false,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post \"{}\": {}", self.url, self.cause)
    }
}

impl std::error::Error for CallError {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Resolve(message) | Cause::Other(message) => f.write_str(message),
            Cause::Lookup(host) => write!(f, "dial tcp: lookup {host}: no such host"),
            Cause::Dial { address, error } => write!(f, "dial tcp {address}: connect: {}", plain(error)),
            Cause::Tls(error) => f.write_str(&tls_text(error)),
            Cause::Closed => f.write_str("EOF"),
            Cause::Reset => f.write_str("read: connection reset by peer"),
            Cause::Timeout => f.write_str("context deadline exceeded"),
            Cause::TooLarge(limit) => write!(f, "the answer has more than {limit} bytes"),
        }
    }
}

impl std::error::Error for Cause {}

/// The system's words without the number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

fn tls_text(error: &io::Error) -> String {
    use rustls::CertificateError;
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let failed = |why: &str| format!("tls: failed to verify certificate: x509: {why}");
    match inner {
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => plain(error),
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            // An authority of the right name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                failed("certificate signed by unknown authority")
            }
            CertificateError::Expired | CertificateError::NotValidYet => {
                failed("certificate has expired or is not yet valid")
            }
            other => failed(&other.to_string()),
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(other) => format!("tls: {other}"),
    }
}
