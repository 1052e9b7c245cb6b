//! Answers a request by the destination.

use super::{super::request_scope::RequestScope, target::target_of};
use crate::{
    base::{
        request::Request,
        response::{Response, empty},
    },
    proxying::{Failure, Origin, Proxying},
};
use http::{HeaderValue, Method, header};
use pintle_machinery::Status;
use pintle_proxy::asks_for_upgrade;
use pintle_registry::{ConnectService, Destination};

/// Answers a request whose decoded path is `path`.
///
/// # Errors
/// The error of the connection.
pub(super) async fn answer(
    scope: &RequestScope<'_>,
    request: Request,
    destination: &Destination,
    path: &str,
) -> Result<Response, Status> {
    let is_upgrade = asks_for_upgrade(request.headers());
    let is_bare = destination.location.path.is_empty() && !path.ends_with('/');
    if is_bare && !is_upgrade && matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(to_root(path, request.uri().query()));
    }
    let query = match is_upgrade {
        // Kubernetes loses it.
        true => "",
        false => request.uri().query().unwrap_or_default(),
    };
    let prefix = prefix_of(path, &destination.location.path).to_owned();
    let target = target_of(destination, query, prefix).map_err(|why| match is_upgrade {
        true => Status::unknown(format!("error dialing backend: {why}")),
        false => status_of(Failure::Unreachable(why)),
    })?;
    let (transports, scheme) = (&scope.server.transports, destination.location.scheme);
    let client = match destination.service {
        ConnectService::ProxyElsewhere => transports.client_elsewhere(destination.transport, scheme),
        _ => transports.client(destination.transport, scheme),
    };
    let proxying = Proxying {
        client: &client,
        target,
        origin: Origin::Client,
        rejects_redirects: false,
        limit: None,
        carry: None,
    };
    proxying.answer(request, |_| Ok(())).await.map_err(status_of)
}

/// The `Status` of a failure to proxy.
pub(super) fn status_of(failure: Failure) -> Status {
    match failure {
        Failure::Internal(why) => Status::internal_error(why),
        Failure::Unreachable(_) => Status::service_unavailable(failure.to_string()),
        failure => Status::unknown(failure.to_string()),
    }
}

/// The part of the client's path in front of that which the destination sees.
fn prefix_of<'a>(path: &'a str, proxied: &str) -> &'a str {
    let proxied = match path.ends_with('/') && !proxied.ends_with('/') {
        true => format!("{proxied}/"),
        false => proxied.to_owned(),
    };
    path.strip_suffix(proxied.as_str()).unwrap_or(path)
}

/// Sends the client to the path with a slash, so that relative links of the page lead below it.
fn to_root(path: &str, query: Option<&str>) -> Response {
    let mark = if query.is_some_and(|query| !query.is_empty()) { "?" } else { "" };
    let location = format!("{path}/{mark}{}", query.unwrap_or_default());
    let mut response = empty(301);
    if let Ok(location) = HeaderValue::from_bytes(location.as_bytes()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_slash_is_not_cached() {
        let check = |query: Option<&str>, expected: &str| {
            let response = to_root("/api/v1/nodes/n/proxy", query);
            let header = |name| response.headers()[name].to_str().unwrap();
            assert_eq!((response.status().as_u16(), header(header::LOCATION)), (301, expected));
            assert_eq!(header(header::CACHE_CONTROL), "no-cache, private");
        };
        check(None, "/api/v1/nodes/n/proxy/");
        check(Some("a=b"), "/api/v1/nodes/n/proxy/?a=b");
    }

    #[test]
    fn the_prefix_is_what_the_destination_does_not_see() {
        let check = |path: &str, proxied: &str, expected: &str| {
            assert_eq!(prefix_of(path, proxied), expected);
        };
        check("/api/v1/nodes/n/proxy/a/b", "/a/b", "/api/v1/nodes/n/proxy");
        check("/api/v1/nodes/n/proxy/", "/", "/api/v1/nodes/n/proxy");
        check("/api/v1/nodes/n/proxy", "", "/api/v1/nodes/n/proxy");
        // A path that was cleaned is no suffix.
        check("/api/v1/nodes/n/proxy/x/../a", "/a", "/api/v1/nodes/n/proxy/x/..");
        check("/api/v1/nodes/n/proxy/a//b", "/a/b", "/api/v1/nodes/n/proxy/a//b");
    }
}
