//! The reasons why a request to another server had no response.

use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind},
};

/// The reason why a request had no response. The texts are those of Go's HTTP client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The service cannot be resolved.
    Resolve(String),
    /// The host name does not exist.
    Lookup(String),
    /// The connection was refused, or could not be made.
    Dial {
        /// The address.
        address: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The server's certificate was rejected, or TLS failed otherwise.
    Tls(io::Error),
    /// The connection was closed before a response.
    Closed,
    /// The connection was reset.
    Reset,
    /// The time-out was exceeded.
    Timeout,
    /// The time-out was exceeded while the body of the response was read.
    SlowBody,
    /// The body of the response ended early.
    BrokenBody,
    /// The body of the response cannot be unpacked.
    MalformedBody(&'static str),
    /// The response exceeds this size limit, in bytes.
    TooLarge(usize),
    /// Any other cause.
    Other(String),
}

impl Cause {
    /// The cause beneath an error of the HTTP library.
    pub fn of(error: impl Error + 'static) -> Cause {
        let mut at: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(error) = at {
            if let Some(cause) = error.downcast_ref::<Cause>() {
                return match cause {
                    Cause::Dial { error, .. } | Cause::Tls(error)
                        if error.kind() == ErrorKind::ConnectionReset =>
                    {
                        Cause::Reset
                    }
                    cause => Cause::Other(cause.to_string()),
                };
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                match error.kind() {
                    ErrorKind::ConnectionReset => return Cause::Reset,
                    // TLS reports a connection that is closed without a farewell.
                    ErrorKind::UnexpectedEof => return Cause::Closed,
                    _ => {}
                }
            }
            if let Some(error) = error.downcast_ref::<hyper::Error>()
                && (error.is_incomplete_message() || error.is_canceled() || error.is_closed())
            {
                return Cause::Closed;
            }
            at = error.source();
        }
        Cause::Other(error.to_string())
    }

    /// Whether a retry may succeed soon: an established connection was lost.
    pub fn is_transient(&self) -> bool {
        match self {
            Cause::Reset => true,
            Cause::Dial { error, .. } | Cause::Tls(error) => error.kind() == ErrorKind::ConnectionReset,
            _ => false,
        }
    }
}

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
            Cause::SlowBody => unreadable_body(f, "context deadline exceeded"),
            Cause::BrokenBody => unreadable_body(f, "unexpected EOF"),
            Cause::MalformedBody(why) => unreadable_body(f, why),
            Cause::TooLarge(limit) => write!(f, "the answer has more than {limit} bytes"),
        }
    }
}

impl Error for Cause {}

fn unreadable_body(f: &mut fmt::Formatter<'_>, why: &str) -> fmt::Result {
    write!(f, "unexpected error when reading response body. Please retry. Original error: {why}")
}

/// The system's error text without the number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

fn tls_text(error: &io::Error) -> String {
    pintle_tls::error_text(error).unwrap_or_else(|| match error.kind() {
        ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => plain(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_x509::VerifyError;
    use rustls::{AlertDescription, CertificateError, OtherError};
    use std::sync::Arc;

    #[test]
    fn causes_have_gos_texts() {
        let check = |cause: Cause, is_transient: bool, expected: &str| {
            assert_eq!(cause.to_string(), expected);
            assert_eq!(cause.is_transient(), is_transient, "{expected}");
        };
        let certificate = |error| io::Error::other(rustls::Error::InvalidCertificate(error));
        check(Cause::Lookup("a".to_owned()), false, "dial tcp: lookup a: no such host");
        check(Cause::Reset, true, "read: connection reset by peer");
        check(Cause::Closed, false, "EOF");
        check(Cause::Tls(io::ErrorKind::UnexpectedEof.into()), false, "EOF");
        check(Cause::Tls(io::ErrorKind::ConnectionReset.into()), true, "connection reset");
        let why = VerifyError::HostName("certificate is valid for a, not b".to_owned());
        check(
            Cause::Tls(certificate(CertificateError::Other(OtherError(Arc::new(why))))),
            false,
            "tls: failed to verify certificate: x509: certificate is valid for a, not b",
        );
        let alert = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
        check(Cause::Tls(io::Error::other(alert)), false, "remote error: tls: handshake failure");
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
