//! The request type inside the server, and the facts about a request that filters add to its extensions.

use crate::base::{body::RequestBody, query::Query, request_info::RequestInfo};
use http::Uri;
use percent_encoding::percent_decode_str;
use pintle_machinery::UserInfo;
use std::{borrow::Cow, sync::Arc};

/// The request that filters and handlers receive.
pub type Request = http::Request<RequestBody>;

/// The request's `RequestInfo`; empty before the filter that parses it.
pub(crate) fn info_of(request: &Request) -> Arc<RequestInfo> {
    request.extensions().get().cloned().unwrap_or_default()
}

/// The request's query; empty before the filter that parses it.
pub(crate) fn query_of(request: &Request) -> Arc<Query> {
    request.extensions().get().cloned().unwrap_or_default()
}

/// The request's user; without a name before authentication.
pub(crate) fn user_of(request: &Request) -> Arc<UserInfo> {
    request.extensions().get().cloned().unwrap_or_default()
}

/// The path of a URI without percent-encoding, as which routes, rules and attributes have it.
pub(crate) fn path_of(uri: &Uri) -> Cow<'_, str> {
    let path = uri.path();
    match path.contains('%') {
        true => percent_decode_str(path).decode_utf8_lossy(),
        false => Cow::Borrowed(path),
    }
}
