//! What a client is told whose request is not read.

use crate::{
    body::Body,
    response::{Response, text},
};
use http::{HeaderValue, StatusCode, header};
use hyper::ext::ReasonPhrase;

/// Why a request is refused before there is one, in the words of Go's `net/http`. The connection ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::serving) enum Refusal {
    /// 400, and no more is said.
    Malformed,
    /// 400, and why.
    BadRequest(&'static str),
    /// 417: the client expects something else than to be asked for the body.
    Expectation,
    /// 431.
    HeadersTooLarge,
    /// 501: a body in a form that nobody reads.
    TransferEncoding,
    /// 505: a version that is not 1.x.
    Version,
}

impl Refusal {
    /// The answer.
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
