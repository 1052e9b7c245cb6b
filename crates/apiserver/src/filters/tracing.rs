//! Begins the span of a request. Spans of filters, verbs and calls of other servers are below it
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-traces/>).
//!
//! A span that the client names is the parent only for privileged users: the spans of others are linked to it, so that
//! nobody else decides what is sampled.

use super::{
    audit_id::Arrival,
    filter::{Filter, Rest},
};
use crate::base::{
    body::Body,
    peer::{RemoteAddress, source_ips},
    request::{Request, info_of, user_of},
    request_info::RequestInfo,
    response::Response,
};
use bytes::Bytes;
use http::{Method, header, uri::Authority};
use pintle_machinery::user::SYSTEM_MASTERS;
use pintle_telemetry::{TARGET, TRACEPARENT};
use tracing::{
    Instrument, Span,
    field::{self, Empty},
};

/// The group of those who monitor the cluster.
const MONITORING: &str = "system:monitoring";

pub(super) struct Tracing;

impl Filter for Tracing {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let span = begin(&request);
        if span.is_disabled() {
            return next.call(request).await;
        }
        let mut response = next.call(request).instrument(span.clone()).await;
        let code = response.status().as_u16();
        span.record("http.response.status_code", code);
        if code >= 500 {
            span.record("otel.error", "");
        }
        if let Body::Full(body) = response.body() {
            span.record("http.response.body.size", body.as_ref().map_or(0, Bytes::len));
        }
        if response.body().is_stream() {
            // The span of a watch or a long list ends with its last frame.
            response = response.map(|body: Body| body.with_guard(span));
        }
        response
    }
}

fn begin(request: &Request) -> Span {
    let info = info_of(request);
    let user = user_of(request);
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let remote = text(http::HeaderName::from_static(TRACEPARENT)).unwrap_or_default();
    let is_privileged = [SYSTEM_MASTERS, MONITORING].iter().any(|group| user.is_member_of(group));
    let (parent, link) = if is_privileged { (remote, "") } else { ("", remote) };
    let arrival = request.extensions().get::<Arrival>();
    let received = arrival.map(|arrival| arrival.received.as_nanosecond());
    let audit_id = arrival.and_then(|arrival| arrival.audit_id.to_str().ok()).unwrap_or_default();
    let uri = request.uri();
    let remote_address = request.extensions().get::<RemoteAddress>();
    // Without tracing, these are not called.
    let server = || uri.authority().cloned().or_else(|| text(header::HOST)?.parse::<Authority>().ok());
    let client = || source_ips(request.headers(), remote_address).into_iter().next();
    tracing::info_span!(
        target: TARGET,
        parent: None,
        "KubernetesAPI",
        otel.name = name(&info, request.method()),
        otel.kind = "server",
        otel.start = received.and_then(|time| u64::try_from(time).ok()),
        otel.parent = parent,
        otel.link = link,
        otel.error = Empty,
        "http.request.method" = request.method().as_str(),
        "http.response.status_code" = Empty,
        "http.target" = uri.path_and_query().map_or("/", |target| target.as_str()),
        "url.path" = uri.path(),
        "url.scheme" = "https",
        "network.protocol.version" = if request.version() == http::Version::HTTP_2 { "2" } else { "1.1" },
        "server.address" = server().as_ref().map(Authority::host),
        "server.port" = server().as_ref().and_then(Authority::port_u16),
        "client.address" = client().map(field::display),
        "network.peer.address" = remote_address.map(|address| field::display(address.0.ip().to_canonical())),
        "network.peer.port" = remote_address.map(|address| address.0.port()),
        "http.request.body.size" = text(header::CONTENT_LENGTH).and_then(|size| size.parse::<u64>().ok()),
        "http.response.body.size" = Empty,
        "user_agent.original" = text(header::USER_AGENT),
        "audit-id" = audit_id,
    )
}

/// The method, and the pattern of the path for resources.
fn name(info: &RequestInfo, method: &Method) -> String {
    if !info.is_resource_request {
        return method.as_str().to_owned();
    }
    let mut name = format!("{method} /{}", if info.api_group.is_empty() { "api" } else { "apis" });
    let namespace = if info.namespace.is_empty() { "" } else { "namespaces/{:namespace}" };
    let object = if info.name.is_empty() { "" } else { "{:name}" };
    for part in [&*info.api_group, &*info.api_version, namespace, &*info.resource, object, &*info.subresource]
    {
        if !part.is_empty() {
            name.push('/');
            name.push_str(part);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::query::Query;

    #[test]
    fn names_are_patterns() {
        for (path, expected) in [
            ("/api/v1/namespaces/a/pods/b/log", "GET /api/v1/namespaces/{:namespace}/pods/{:name}/log"),
            ("/apis/apps/v1/deployments", "GET /apis/apps/v1/deployments"),
            ("/healthz", "GET"),
        ] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::default());
            assert_eq!(name(&info, &Method::GET), expected);
        }
    }
}
