//! Builds responses, also from failures.

use crate::base::{
    body::Body,
    encoding::encode_status,
    negotiation::{Accepted, MediaType, MediaTypes, Offers, accepted, not_acceptable_of},
    request::header_text,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use pintle_machinery::Status;
use std::{any::Any, sync::Arc, time::Duration};

/// The response that filters and handlers return.
pub type Response = http::Response<Body>;

/// Marks the response of the handler of a [route](crate::base::route_slot::RouteSlot).
#[derive(Clone)]
pub(crate) struct Served {
    /// The time that webhooks took.
    pub(crate) webhook_time: Duration,
}

/// Marks a response of an endpoint that is no resource but is measured, such as a health check.
#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
    pub(crate) component: &'static str,
}

/// Marks a response that the server gave to protect itself instead of serving the request.
#[derive(Clone, Copy)]
pub(crate) enum Terminated {
    /// There were too many requests.
    Dropped,
    /// The request was over its time.
    TimedOut,
    /// The server behind an API service was not asked.
    Unavailable,
}

/// Marks a response of a deprecated version.
#[derive(Clone)]
pub(crate) struct Deprecated {
    /// The release that removes the version.
    pub(crate) removed_release: Option<String>,
}

/// The time that a request waited in a queue of flow control.
#[derive(Clone, Copy)]
pub(crate) struct QueueWait(pub(crate) Duration);

/// Marks a response of another server: its body is no object of this one.
#[derive(Clone, Copy)]
pub(crate) struct Proxied;

/// Marks a streamed response whose frames are shared with other clients.
#[derive(Clone, Copy)]
pub(crate) struct SharedFrames;

/// A guard that is dropped when a response is sent; a response extension. Of a response that switches protocols, it is
/// dropped with the head.
#[derive(Clone)]
pub(crate) struct UntilSent(
    #[expect(dead_code, reason = "kept for what its drop does")] Arc<dyn Any + Send + Sync>,
);

impl UntilSent {
    /// Keeps `kept` until the response is sent.
    pub(crate) fn new(kept: impl Any + Send + Sync) -> UntilSent {
        UntilSent(Arc::new(kept))
    }
}

/// The `Status` of a response, independent of its encoding.
#[derive(Clone)]
pub(crate) struct Answered(pub(crate) Arc<Status>);

impl Answered {
    pub(crate) fn new(status: Status) -> Answered {
        Answered(Arc::new(status))
    }
}

/// Puts a header in front of those of this name that another server has set.
pub(crate) fn put_first(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let others: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
    headers.insert(&name, value);
    for other in others {
        headers.append(&name, other);
    }
}

/// A response with a body of the given media type.
pub fn with_content_type(code: u16, content_type: &str, body: impl Into<Body>) -> Response {
    let mut response = empty(code).map(|_| body.into());
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

/// A response without a body, which is not cached.
pub fn empty(code: u16) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A plain-text response.
pub fn text(code: u16, text: impl Into<String>) -> Response {
    with_content_type(code, "text/plain; charset=utf-8", Body::from(text.into()))
}

/// A failure, in the negotiated encoding, without a transformation.
pub fn failure(status: &Status, accepted: &Accepted) -> Response {
    let accepted = Accepted { transform: None, ..accepted.clone() };
    let mut response =
        with_content_type(status.code, accepted.media_type.as_str(), encode_status(status, &accepted));
    response.extensions_mut().insert(Answered::new(status.clone()));
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// A failure, in the encoding that the request's `Accept` header selects, without a transformation; otherwise JSON.
pub fn negotiated_failure(status: &Status, headers: &HeaderMap, pretty: Option<&str>) -> Response {
    failure_among(status, headers, pretty, MediaTypes::COMMON)
}

/// As [`negotiated_failure`], for an endpoint with these encodings.
pub fn failure_among(
    status: &Status,
    headers: &HeaderMap,
    pretty: Option<&str>,
    media_types: MediaTypes,
) -> Response {
    match accepted(headers, pretty, Offers::Plain, media_types) {
        Ok(accepted) => failure(status, &accepted),
        // Go's server sends indented JSON without a final newline here, which audit events do not have.
        Err(_) => {
            let mut response = failure(status, &Accepted { pretty: true, ..Accepted::JSON });
            response.extensions_mut().remove::<Answered>();
            response.map(|body| match body {
                Body::Full(Some(bytes)) => Body::from(bytes.slice(..bytes.trim_ascii_end().len())),
                body => body,
            })
        }
    }
}

/// Checks `Accept` for a response that exists in one media type only and has no transformations. Any clause that names
/// the type matches, whatever its position and quality; `*/*` matches too, `application/*` does not.
///
/// # Errors
/// The 406 response, in the encoding that the client accepts.
pub fn accept_only(headers: &HeaderMap, media_type: &str) -> Result<(), Box<Response>> {
    let accept = header_text(headers, header::ACCEPT);
    let names_it = |clause: &str| {
        let name = clause.split(';').next().unwrap_or_default().trim();
        name == media_type || name == "*/*"
    };
    if accept.is_empty() || accept.split(',').any(names_it) {
        return Ok(());
    }
    Err(Box::new(negotiated_failure(&not_acceptable_of(&[media_type]), headers, None)))
}

/// A failure as JSON.
pub fn json_failure(status: &Status) -> Response {
    failure(status, &Accepted::JSON)
}

/// A response that is a JSON document but no API object, such as `/version`.
pub fn json_document(code: u16, document: &pintle_machinery::Value) -> Response {
    with_content_type(code, MediaType::Json.as_str(), Body::from(document.to_string()))
}

/// The 500 of a filter, as text.
pub(crate) fn internal_error(uri: &Uri, why: &str) -> Response {
    let uri = uri.path_and_query().map(|uri| uri.as_str()).unwrap_or_default();
    let message = format!("Internal Server Error: {}: {why}\n", pintle_go_forms::quote(uri));
    let mut response = text(500, message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The 404 of Go's HTTP server, for a path that is not served.
pub fn not_found() -> Response {
    let mut response = text(404, "404 page not found\n");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_form_is_the_response_to_every_clause_that_names_it() {
        let check = |accept: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            let answer = accept_only(&headers, "application/json").err();
            let content_type =
                answer.as_ref().map(|answer| answer.headers()[header::CONTENT_TYPE].to_str().unwrap());
            assert_eq!(content_type, expected, "{accept}");
        };
        check("", None);
        check("*/*", None);
        check("application/json", None);
        check("application/json;q=0.1, text/html", None);
        check("application/vnd.kubernetes.protobuf, */*", None);
        check("application/vnd.kubernetes.protobuf,application/json", None);
        check("application/vnd.kubernetes.protobuf", Some("application/vnd.kubernetes.protobuf"));
        check("application/yaml", Some("application/yaml"));
        check("application/*", Some("application/json"));
        check("text/html", Some("application/json"));
    }
}
