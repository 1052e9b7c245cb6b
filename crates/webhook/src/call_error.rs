//! The errors of calling a webhook, before it has answered.

use std::fmt;
use std::io;

/// The reason why a webhook's configuration is unusable.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is invalid.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The CA certificates are unusable.
    #[error("unable to load root certificates: {0}")]
    Roots(String),
    /// The client's credentials are unusable.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// TLS cannot be configured.
    #[error("{0}")]
    Tls(String),
}

/// The reason why a call had no response. Its text is that of Go's HTTP client.
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
    /// The host name does not exist.
    Lookup(String),
    /// The connection was refused, or could not be made.
    Dial { address: String, error: io::Error },
    /// The webhook's certificate was rejected, or TLS failed otherwise.
    Tls(io::Error),
    /// The connection was closed before a response.
    Closed,
    /// The connection was reset.
    Reset,
    /// The time-out was exceeded.
    Timeout,
    /// The response exceeds this size limit, in bytes.
    TooLarge(usize),
    /// Any other cause.
    Other(String),
}

impl CallError {
    pub(crate) fn new(url: &str, cause: Cause) -> CallError {
        CallError { url: url.to_owned(), cause }
    }

    /// Whether the call timed out.
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::Timeout)
    }

    /// Whether a retry may succeed soon: an established connection was lost.
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

/// The system's error text without the number.
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
            // A CA of the same name with another key.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::CertificateError;

    #[test]
    fn causes_have_gos_texts() {
        let check = |cause: Cause, is_transient: bool, expected: &str| {
            let error = CallError::new("https://a/x", cause);
            assert_eq!(error.to_string(), format!("Post \"https://a/x\": {expected}"));
            assert_eq!(error.is_transient(), is_transient, "{expected}");
        };
        let certificate = |error| io::Error::other(rustls::Error::InvalidCertificate(error));
        check(Cause::Lookup("a".to_owned()), false, "dial tcp: lookup a: no such host");
        check(Cause::Reset, true, "read: connection reset by peer");
        check(Cause::Closed, false, "EOF");
        check(Cause::Tls(io::ErrorKind::UnexpectedEof.into()), false, "EOF");
        check(Cause::Tls(io::ErrorKind::ConnectionReset.into()), true, "connection reset");
        check(
            Cause::Tls(certificate(CertificateError::UnknownIssuer)),
            false,
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        );
        check(
            Cause::Tls(certificate(CertificateError::Expired)),
            false,
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
        );
        check(
            Cause::Tls(io::Error::other(rustls::Error::InvalidMessage(
                rustls::InvalidMessage::InvalidContentType,
            ))),
            false,
            "tls: first record does not look like a TLS handshake",
        );
        let address = "127.0.0.1:1".to_owned();
        let error = io::Error::from_raw_os_error(111);
        check(Cause::Dial { address, error }, false, "dial tcp 127.0.0.1:1: connect: connection refused");
    }
}
