//! The text behind a status code in a response of HTTP/1.

use crate::base::response::Response;
use bytes::Bytes;
use http::StatusCode;
use hyper::ext::ReasonPhrase;

/// Sets the text of Go's server where the HTTP library has another one, or none: proxied servers answer with codes of their
/// own.
pub(super) fn name_status(response: &mut Response) {
    let reason = match response.status() {
        StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            ReasonPhrase::from_static(b"Non-Authoritative Information")
        }
        StatusCode::PAYLOAD_TOO_LARGE => ReasonPhrase::from_static(b"Request Entity Too Large"),
        StatusCode::URI_TOO_LONG => ReasonPhrase::from_static(b"Request URI Too Long"),
        StatusCode::RANGE_NOT_SATISFIABLE => ReasonPhrase::from_static(b"Requested Range Not Satisfiable"),
        status if status.canonical_reason().is_some() => return,
        status => match ReasonPhrase::try_from(Bytes::from(format!("status code {}", status.as_str()))) {
            Ok(reason) => reason,
            Err(_) => return,
        },
    };
    response.extensions_mut().insert(reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::Body;

    #[test]
    fn each_status_has_the_text_of_go() {
        let cases = [
            (200, None),
            (203, Some("Non-Authoritative Information")),
            (413, Some("Request Entity Too Large")),
            (416, Some("Requested Range Not Satisfiable")),
            (418, None),
            (499, Some("status code 499")),
            (999, Some("status code 999")),
        ];
        for (code, expected) in cases {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            name_status(&mut response);
            let reason = response.extensions().get::<ReasonPhrase>();
            let reason = reason.map(|reason| std::str::from_utf8(reason.as_bytes()).unwrap());
            assert_eq!(reason, expected, "{code}");
        }
    }
}
