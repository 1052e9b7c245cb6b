//! Responses to requests with a refused head.

use crate::base::{
    body::Body,
    response::{Response, text},
};
use http::{HeaderValue, StatusCode, header};
use hyper::ext::ReasonPhrase;

/// The reason why a head is refused, with the responses of Go's `net/http`. The connection ends with the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::serving) enum Refusal {
    /// 400 without a reason.
    Malformed,
    /// 400 with the reason.
    BadRequest(&'static str),
    /// 417: an expectation other than `100-continue`.
    Expectation,
    /// 431.
    HeadersTooLarge,
    /// 501: an unsupported transfer encoding.
    TransferEncoding,
    /// 505: an HTTP version other than 1.x.
    Version,
}

impl Refusal {
    /// The response.
    pub(in crate::serving) fn response(self) -> Response {
        let (code, why, body) = match self {
            Refusal::Malformed => (400, None, "400 Bad Request".to_owned()),
            Refusal::BadRequest(why) => (400, Some(why), format!("400 Bad Request: {why}")),
            Refusal::Expectation => (417, None, String::new()),
            Refusal::HeadersTooLarge => (431, None, "431 Request Header Fields Too Large".to_owned()),
            Refusal::TransferEncoding => (501, None, "Unsupported transfer encoding".to_owned()),
            Refusal::Version => {
                let why = "unsupported protocol version";
                (505, Some(why), format!("505 HTTP Version Not Supported: {why}"))
            }
        };
        let mut response = match self {
            Refusal::Expectation => Response::new(Body::empty()),
            _ => text(code, body),
        };
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
        let headers = response.headers_mut();
        headers.remove(header::CACHE_CONTROL);
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if let (Some(why), Some(reason)) = (why, response.status().canonical_reason())
            && let Ok(phrase) = ReasonPhrase::try_from(format!("{reason}: {why}"))
        {
            response.extensions_mut().insert(phrase);
        }
        response
    }
}
