//! Parses the `RequestInfo` and the query for all later filters and handlers.

use super::filter::{Filter, Rest};
use crate::base::{
    query::Query,
    request::{Request, path_of},
    request_info::RequestInfo,
    response::{Response, internal_error},
};
use http::header;
use std::sync::Arc;

pub(super) struct ReadRequestInfo;

impl Filter for ReadRequestInfo {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let path = path_of(request.uri());
        let info = RequestInfo::parse(request.method(), &path, &query);
        if info.is_prefix_alone() {
            let why = "failed to create RequestInfo: unable to determine kind and namespace from url";
            let uri = request.uri().path_and_query().map(|uri| uri.as_str()).unwrap_or_default();
            let mut response = internal_error(request.uri(), &format!("{why}, {uri}"));
            // This filter is outside of the one that sets the header.
            response.headers_mut().remove(header::CACHE_CONTROL);
            return response;
        }
        request.extensions_mut().insert(Arc::new(info));
        request.extensions_mut().insert(Arc::new(query));
        next.call(request).await
    }
}
