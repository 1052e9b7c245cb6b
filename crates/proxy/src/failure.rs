//! Responses of the proxy itself.

use crate::body::ResponseBody;
use http::{HeaderValue, Response, StatusCode, header};

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

/// 503 with the text of an error.
pub(crate) fn unavailable(text: &str) -> Response<ResponseBody> {
    failure(StatusCode::SERVICE_UNAVAILABLE, text)
}
