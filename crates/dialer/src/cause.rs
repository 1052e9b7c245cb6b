//! The reasons why a request to another server had no response.

use crate::insecure_signature::InsecureSignature;
use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind},
    net::IpAddr,
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
            Cause::BrokenBody => f.write_str(
                "unexpected error when reading response body. Please retry. Original error: unexpected EOF",
            ),
            Cause::MalformedBody(why) => {
                write!(f, "unexpected error when reading response body. Please retry. Original error: {why}")
            }
            Cause::TooLarge(limit) => write!(f, "the answer has more than {limit} bytes"),
        }
    }
}

impl Error for Cause {}

/// The system's error text without the number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

pub(crate) fn tls_text(error: &io::Error) -> String {
    use rustls::CertificateError;
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let failed = |why: &str| format!("tls: failed to verify certificate: x509: {why}");
    match inner {
        None if error.kind() == ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => plain(error),
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            // A CA of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                failed("certificate signed by unknown authority")
            }
            CertificateError::Expired | CertificateError::NotValidYet => {
                failed("certificate has expired or is not yet valid")
            }
            CertificateError::NotValidForNameContext { expected, presented } => {
                failed(&name_text(&expected.to_str(), presented))
            }
            CertificateError::UnsupportedSignatureAlgorithmContext { signature_algorithm_id, .. } => {
                // Go also names the candidate for the authority, which this error does not know.
                let why = match InsecureSignature::of(signature_algorithm_id) {
                    Some(signature) => format!("insecure algorithm {}", signature.name()),
                    None => "algorithm unimplemented".to_owned(),
                };
                failed(&format!(
                    "certificate signed by unknown authority (possibly because of \"x509: cannot verify signature: {why}\")"
                ))
            }
            CertificateError::Other(other) => failed(&other.0.to_string()),
            other => failed(&other.to_string()),
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(other) => format!("tls: {other}"),
    }
}

/// The text for a certificate of other names. `presented` has names as `DnsName("example.com")` and addresses as
/// `IpAddress(10.0.0.1)`.
fn name_text(expected: &str, presented: &[String]) -> String {
    let is_address = expected.parse::<IpAddr>().is_ok();
    let (begin, end) = if is_address { ("IpAddress(", ")") } else { ("DnsName(\"", "\")") };
    let names: Vec<&str> =
        presented.iter().filter_map(|name| name.strip_prefix(begin)?.strip_suffix(end)).collect();
    match names.is_empty() {
        true if is_address => {
            format!("cannot validate certificate for {expected} because it doesn't contain any IP SANs")
        }
        true => format!("certificate is not valid for any names, but wanted to match {expected}"),
        false => format!("certificate is valid for {}, not {expected}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, OtherError, pki_types::ServerName};
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
        check(
            Cause::Tls(certificate(CertificateError::UnknownIssuer)),
            false,
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        );
        let other_names = |presented: &[&str]| {
            let presented = presented.iter().map(ToString::to_string).collect();
            let expected = ServerName::try_from("s.n.svc").unwrap();
            Cause::Tls(certificate(CertificateError::NotValidForNameContext { expected, presented }))
        };
        check(
            other_names(&["DnsName(\"a.example.com\")", "DnsName(\"b\")"]),
            false,
            "tls: failed to verify certificate: x509: certificate is valid for a.example.com, b, not s.n.svc",
        );
        check(
            other_names(&[]),
            false,
            "tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match s.n.svc",
        );
        let other_addresses = |presented: &[&str]| {
            let presented = presented.iter().map(ToString::to_string).collect();
            let expected = ServerName::try_from("10.0.0.1").unwrap();
            Cause::Tls(certificate(CertificateError::NotValidForNameContext { expected, presented }))
        };
        let failed = "tls: failed to verify certificate: x509:";
        check(
            other_addresses(&["IpAddress(10.0.0.2)", "DnsName(\"b\")", "IpAddress(10.0.0.3)"]),
            false,
            &format!("{failed} certificate is valid for 10.0.0.2, 10.0.0.3, not 10.0.0.1"),
        );
        check(
            other_addresses(&["DnsName(\"b\")"]),
            false,
            &format!(
                "{failed} cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs"
            ),
        );
        let other = OtherError(Arc::new(io::Error::other("certificate relies on something")));
        check(
            Cause::Tls(certificate(CertificateError::Other(other))),
            false,
            "tls: failed to verify certificate: x509: certificate relies on something",
        );
        let signed_with = |oid: &[u8]| {
            Cause::Tls(certificate(CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: [&[6, oid.len() as u8], oid, &[5, 0]].concat(),
                supported_algorithms: Vec::new(),
            }))
        };
        let refused =
            "certificate signed by unknown authority (possibly because of \"x509: cannot verify signature:";
        check(
            signed_with(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]),
            false,
            &format!("{failed} {refused} insecure algorithm ECDSA-SHA1\")"),
        );
        check(signed_with(&[0x2a]), false, &format!("{failed} {refused} algorithm unimplemented\")"));
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
