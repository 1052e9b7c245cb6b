//! Failures of the proxy itself.

use crate::body::ResponseBody;
use http::{HeaderValue, Response, StatusCode, header};

/// Why a request has no response of the backend. The texts are those of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// There is no connection, or no response.
    #[error("error trying to reach service: {0}")]
    Unreachable(String),
    /// The response cannot be understood.
    #[error("Internal error occurred: {0}")]
    Internal(String),
    /// The connection cannot be upgraded, or the response not rewritten.
    #[error("{0}")]
    Other(String),
}

/// A failure as plain text, with a newline behind it: the form of Go's `http.Error`.
pub fn failure(code: StatusCode, text: &str) -> Response<ResponseBody> {
    let mut response = plain(code, format!("{text}\n"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response with exactly this text.
pub(crate) fn plain(code: StatusCode, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Full(text.into()));
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
