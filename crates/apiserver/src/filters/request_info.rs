//! Parses the `RequestInfo` and the query for all later filters and handlers.

use super::filter::{Filter, Rest};
use crate::base::{query::Query, request::Request, request_info::RequestInfo, response::Response};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

pub(super) struct ReadRequestInfo;

impl Filter for ReadRequestInfo {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let info = RequestInfo::parse(request.method(), &path, &query);
        request.extensions_mut().insert(Arc::new(info));
        request.extensions_mut().insert(Arc::new(query));
        next.call(request).await
    }
}
