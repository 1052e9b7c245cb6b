//! The request type inside the server, and the facts about a request that filters add to its extensions.

use crate::base::{body::RequestBody, query::Query, request_info::RequestInfo};
use http::{HeaderMap, HeaderName, Uri};
use percent_encoding::percent_decode_str;
use pintle_machinery::UserInfo;
use std::{borrow::Cow, str, sync::Arc};

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

/// The text of a header's first value; empty without the header. Text that is not UTF-8 is replaced: it names nothing.
pub(crate) fn header_text(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name).map(|value| str::from_utf8(value.as_bytes()));
    value.map_or("", |text| text.unwrap_or("\u{fffd}"))
}

/// The path of a URI without percent-encoding, as which routes, rules and attributes have it.
pub(crate) fn path_of(uri: &Uri) -> Cow<'_, str> {
    let path = uri.path();
    match path.contains('%') {
        true => percent_decode_str(path).decode_utf8_lossy(),
        false => Cow::Borrowed(path),
    }
}
