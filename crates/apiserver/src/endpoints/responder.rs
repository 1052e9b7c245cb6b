//! Makes the response of a request from the result of its verb.

use super::request_scope::{RequestScope, removed_release};
use crate::base::{
    compression::Compressible,
    negotiation::MediaTypes,
    response::{Deprecated, Response, Served, failure_among},
};
use http::Method;
use pintle_machinery::Status;
use std::{sync::atomic::Ordering, time::Duration};

/// Makes the response of a request.
pub(super) struct Responder<'a> {
    pub(super) scope: &'a RequestScope<'a>,
    pub(super) method: &'a Method,
    /// Whether the request has a verb.
    pub(super) is_served: bool,
    /// Whether the path and the method are a route of the reference.
    pub(super) is_routed: bool,
    /// Whether the verb's response is no single answer.
    pub(super) is_stream: bool,
}

impl Responder<'_> {
    /// The response with the warnings of the request, and marks for the filters.
    pub(super) fn respond(&self, result: Result<Response, Status>) -> Response {
        let Responder { scope, method, is_served, is_routed, is_stream } = *self;
        let mut is_refused_by_route = false;
        let mut response = match result {
            Ok(response) => response,
            Err(status) => {
                let refuses_patch = scope.refuses_patch(method, &status);
                is_refused_by_route = refuses_patch || scope.refuses_form(&status);
                // A route refuses formats of patches itself, and has the common encodings only; so has what answers
                // methods without a route. A request without a name, or with a patch of an unknown format, has one.
                let has_verb = is_served || matches!(status.code, 400 | 415);
                let is_common = refuses_patch || !has_verb;
                let media_types = if is_common { MediaTypes::COMMON } else { scope.server.media_types };
                failure_among(&status, scope.headers, scope.query.first("pretty"), media_types)
            }
        };
        if !is_refused_by_route {
            scope.warnings.write_to(response.headers_mut());
        }
        let marks = response.extensions_mut();
        if !is_stream {
            marks.insert(Compressible);
        }
        if is_routed
            && !is_refused_by_route
            && let Some(text) = &scope.resource.resource.deprecation
        {
            marks.insert(Deprecated { removed_release: removed_release(text).map(str::to_owned) });
        }
        if is_served {
            let webhook_time = Duration::from_nanos(scope.webhook_time.load(Ordering::Relaxed));
            marks.insert(Served { webhook_time });
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use crate::endpoints::testing::{CONFIG_MAPS, TestServer, WIDGETS};
    use http::header;

    #[tokio::test]
    async fn refusals_without_a_verb_have_the_common_encodings_only() {
        let server = TestServer::start().await.with_cbor();
        let check = async |method: &str, uri: &str, expected: &str| {
            let headers = [(header::ACCEPT, "application/cbor")];
            let response = server.respond_with(method, uri, &headers, "").await;
            assert_eq!(response.headers()[header::CONTENT_TYPE], expected, "{method} {uri}");
        };
        check("GET", &format!("{CONFIG_MAPS}/a"), "application/cbor").await;
        check("PUT", WIDGETS, "application/cbor").await;
        check("PATCH", WIDGETS, "application/cbor").await;
        check("PUT", CONFIG_MAPS, "application/json").await;
        check("GET", &format!("{CONFIG_MAPS}/a/scale"), "application/json").await;
        check("GET", &format!("{WIDGETS}/a/scale"), "application/json").await;
    }
}
