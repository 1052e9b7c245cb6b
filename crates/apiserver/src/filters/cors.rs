//! Answers cross-origin requests of browsers (<https://fetch.spec.whatwg.org/#http-cors-protocol>).

use super::filter::{Filter, Rest};
use crate::base::{
    request::Request,
    response::{Response, empty},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use regex::Regex;

pub(super) struct Cors {
    /// An origin is allowed when one of these matches it.
    pub(super) allowed_origins: Vec<Regex>,
}

/// The CORS response headers for an allowed origin, besides its name.
const ALLOWED: [(HeaderName, HeaderValue); 4] = [
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
             If-Modified-Since",
        ),
    ),
    (header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Date")),
    (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true")),
];

impl Filter for Cors {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let Some(origin) = self.allowed(request.headers()) else { return next.call(request).await };
        let mut response = match *request.method() {
            // A preflight request needs no credentials and returns no data.
            Method::OPTIONS => empty(204),
            _ => next.call(request).await,
        };
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.extend(ALLOWED);
        response
    }
}

impl Cors {
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        self.allowed_origins.iter().any(|allowed| allowed.is_match(text)).then(|| origin.clone())
    }
}
