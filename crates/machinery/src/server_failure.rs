//! The `Status` of another server's failure.

use crate::{GroupResource, Status, StatusDetails, StatusReason};
use pintle_go_forms::quote_bytes;

/// The reason and the text for a response with this status code that is no `Status`, as Kubernetes' clients make them.
/// They have its `message` where that is fit for clients.
pub fn server_failure(code: u16, message: &[u8]) -> (StatusReason, String) {
    let shown = || String::from_utf8_lossy(message).into_owned();
    let (reason, text) = match code {
        400 => (StatusReason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => (StatusReason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => return (StatusReason::Forbidden, shown()),
        404 => (StatusReason::NotFound, "the server could not find the requested resource"),
        405 => {
            let text = "the server does not allow this method on the requested resource";
            (StatusReason::MethodNotAllowed, text)
        }
        406 if matches!(message, b"" | b"unknown") => {
            let text = "the server was unable to respond with a content type that the client supports";
            (StatusReason::NotAcceptable, text)
        }
        406 => return (StatusReason::NotAcceptable, shown()),
        409 => (StatusReason::Conflict, "the server reported a conflict"),
        415 => return (StatusReason::UnsupportedMediaType, shown()),
        422 => (StatusReason::Invalid, "the server rejected our request due to an error in our request"),
        429 => {
            let text = "the server has received too many requests and has asked us to try again later";
            (StatusReason::TooManyRequests, text)
        }
        503 => (StatusReason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => {
            let text = "the server was unable to return a response in the time allotted, but may still be \
                        processing the request";
            (StatusReason::Timeout, text)
        }
        500.. => {
            let message = quote_bytes(message);
            let text =
                format!("an error on the server ({message}) has prevented the request from succeeding");
            return (StatusReason::InternalError, text);
        }
        _ => {
            let text = format!(
                "the server responded with the status code {code} but did not return more information"
            );
            return (StatusReason::Unknown, text);
        }
    };
    (reason, text.to_owned())
}

impl Status {
    /// The failure of another server that was asked for an object of this resource and name: its status code, and its
    /// `message` where that is fit for clients.
    pub fn server_response(code: u16, resource: &GroupResource, name: &str, message: &[u8]) -> Status {
        let (reason, text) = server_failure(code, message);
        let mut status = Self::failure(code, reason, format!("{text} ( {resource} {name})"));
        status.details = Some(StatusDetails {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..StatusDetails::default()
        });
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_where_they_are_fit() {
        let text = |code, message: &[u8]| server_failure(code, message).1;
        assert_eq!(text(403, b"no"), "no");
        assert_eq!(text(404, b"no"), "the server could not find the requested resource");
        assert_eq!(
            text(500, b"a\xff\0"),
            r#"an error on the server ("a\xff\x00") has prevented the request from succeeding"#
        );
        assert_eq!(
            text(302, b"no"),
            "the server responded with the status code 302 but did not return more information"
        );
    }
}
