//! Sets `Strict-Transport-Security`: browsers then use TLS only (<https://www.rfc-editor.org/rfc/rfc6797>).

use super::filter::{Filter, Rest};
use crate::base::{request::Request, response::Response};
use http::{HeaderValue, header};

pub(super) struct Hsts {
    pub(super) directives: HeaderValue,
}

impl Filter for Hsts {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let mut response = next.call(request).await;
        let headers = response.headers_mut();
        headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert_with(|| self.directives.clone());
        response
    }
}
