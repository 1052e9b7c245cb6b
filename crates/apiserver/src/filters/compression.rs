//! Compresses the responses that are API objects.

use super::filter::{Filter, Rest};
use crate::base::{
    compression::{Compressible, accepts_gzip, compress},
    request::Request,
    response::Response,
};
use http::header;

pub(super) struct Compression;

impl Filter for Compression {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let accepts = accepts_gzip(request.headers());
        let response = next.call(request).await;
        let is_whole = !response.headers().contains_key(header::CONTENT_ENCODING);
        match accepts && is_whole && response.extensions().get::<Compressible>().is_some() {
            true => compress(response).await,
            false => response,
        }
    }
}
