//! Responses to requests with a refused head.

use crate::base::{
    body::Body,
    response::{Response, text},
};
use http::{HeaderValue, StatusCode, header};
use hyper::ext::ReasonPhrase;
use pintle_http1::Refusal;

/// The response to a request whose head is refused; the connection ends with it.
pub(in crate::serving) fn refused(refusal: Refusal) -> Response {
    let (code, why, body) = match refusal {
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
    let mut response = match refusal {
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

/// The response to a request of HTTP/2 whose head is refused; `None` if its stream is reset.
pub(in crate::serving) fn refused_in_http2(refusal: pintle_http2::Refusal) -> Option<Response> {
    use pintle_http2::Refusal::{Header, Malformed, Te, TooLarge};
    let (code, why) = match refusal {
        Malformed => return None,
        Header(name) => (400, format!("request header \"{name}\" is not valid in HTTP/2\n")),
        Te => (400, "request header \"TE\" may only be \"trailers\" in HTTP/2\n".to_owned()),
        TooLarge => (431, "431 Request Header Fields Too Large".to_owned()),
    };
    let mut response = text(code, why);
    let headers = response.headers_mut();
    headers.remove(header::CACHE_CONTROL);
    if code == 400 {
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    Some(response)
}
