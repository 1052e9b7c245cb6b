//! The texts of failed handshakes.

use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// The text of Go's `crypto/tls` for a failed connection. `None` if the error is not one of TLS.
pub fn error_text(error: &io::Error) -> Option<String> {
    let failed = |why: &str| format!("tls: failed to verify certificate: {why}");
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => match error {
            // The verifier of this crate has Go's texts.
            CertificateError::Other(why) => failed(&why.0.to_string()),
            other => failed(&format!("x509: {other}")),
        },
        Error::InvalidMessage(_) => "tls: first record does not look like a TLS handshake".to_owned(),
        Error::AlertReceived(alert) => format!("remote error: tls: {}", alert_text(*alert)),
        other => format!("tls: {other}"),
    })
}

/// Go's text for an alert (<https://www.rfc-editor.org/rfc/rfc8446#section-6>).
fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnexpectedMessage => "unexpected message",
        AlertDescription::BadRecordMac => "bad record MAC",
        AlertDescription::DecryptionFailed => "decryption failed",
        AlertDescription::RecordOverflow => "record overflow",
        AlertDescription::DecompressionFailure => "decompression failure",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::IllegalParameter => "illegal parameter",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::DecodeError => "error decoding message",
        AlertDescription::DecryptError => "error decrypting message",
        AlertDescription::ExportRestriction => "export restriction",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InsufficientSecurity => "insufficient security level",
        AlertDescription::InternalError => "internal error",
        AlertDescription::InappropriateFallback => "inappropriate fallback",
        AlertDescription::UserCanceled => "user canceled",
        AlertDescription::NoRenegotiation => "no renegotiation",
        AlertDescription::MissingExtension => "missing extension",
        AlertDescription::UnsupportedExtension => "unsupported extension",
        AlertDescription::UnrecognisedName => "unrecognized name",
        AlertDescription::UnknownPSKIdentity => "unknown PSK identity",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        other => return format!("alert({})", u8::from(other)),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_x509::VerifyError;
    use rustls::OtherError;
    use std::sync::Arc;

    #[test]
    fn errors_have_gos_texts() {
        let why = VerifyError::HostName("certificate is valid for a, not b".to_owned());
        let refused = Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(why))));
        let rows = [
            (
                io::Error::other(refused),
                Some("tls: failed to verify certificate: x509: certificate is valid for a, not b"),
            ),
            (
                io::Error::other(Error::AlertReceived(AlertDescription::CertificateRequired)),
                Some("remote error: tls: certificate required"),
            ),
            (io::ErrorKind::UnexpectedEof.into(), None),
        ];
        for (error, expected) in rows {
            assert_eq!(error_text(&error).as_deref(), expected, "{error}");
        }
    }
}
