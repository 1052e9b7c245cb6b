//! Authenticates the request and stores its `UserInfo`.

use super::{
    audit,
    audit_id::Arrival,
    filter::{Filter, Rest},
};
use crate::base::{
    client::while_client_waits,
    connection::ConnectionHandle,
    peer::PeerCertificates,
    request::{Request, query_of},
    response::{Response, negotiated_failure},
    warning::Warnings,
    websocket_protocol::{self, ProtocolToken},
};
use crate::metrics::Metrics;
use http::{HeaderMap, HeaderValue, Version, header};
use pintle_audit::{Auditor, ResponseStatus};
use pintle_auth::{
    RequestHeaders,
    authn::{Authenticated, Authenticator, Credentials, InvalidCredentials},
};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::base64;
use pintle_machinery::{
    Status, UserInfo,
    user::{ANONYMOUS, UNAUTHENTICATED},
};
use std::{borrow::Cow, sync::Arc, time::Instant};

pub(super) struct Authentication {
    pub(super) authenticator: Arc<dyn Authenticator>,
    /// Receives the events of requests that this filter refuses.
    pub(super) auditor: Option<Arc<Auditor>>,
    /// The headers in which a front proxy sends the user. They are removed before the next filter.
    pub(super) request_headers: [RequestHeaders; 2],
    pub(super) metrics: Arc<Metrics>,
}

impl Authentication {
    /// `own` are the configured header names; the standard ones are removed as well.
    pub(super) fn new(
        authenticator: Arc<dyn Authenticator>,
        own: RequestHeaders,
        auditor: Option<Arc<Auditor>>,
        metrics: Arc<Metrics>,
    ) -> Authentication {
        Authentication { authenticator, auditor, request_headers: [RequestHeaders::standard(), own], metrics }
    }

    /// The user whom the request shows with this bearer token or by other means; the error says why there is none.
    async fn user_of(
        &self,
        request: &Request,
        bearer_token: Option<&str>,
    ) -> Result<Authenticated, InvalidCredentials> {
        let certificates = request.extensions().get::<PeerCertificates>().cloned();
        let credentials = Credentials {
            certificates: certificates.as_ref().map(|certificates| &*certificates.0).unwrap_or_default(),
            bearer_token,
            headers: request.headers(),
            path: request.uri().path(),
        };
        // The head of a request whose client is gone is charged to no budget.
        match while_client_waits(request, self.authenticator.authenticate(&credentials)).await {
            Some(Ok(Some(authenticated))) => Ok(authenticated),
            Some(Ok(None)) => Err(InvalidCredentials::new("nobody is known by what the request shows")),
            Some(Err(error)) => Err(error),
            None => Err(InvalidCredentials::new("the client is gone")),
        }
    }

    /// The 401 response, after its audit event is written.
    async fn refuse(&self, request: &Request, why: &InvalidCredentials) -> Response {
        let refuse = || unauthorized(request, &why.reason);
        let outcome = ResponseStatus { message: attempted(request).into(), ..ResponseStatus::default() };
        audit::refused(self.auditor.as_ref(), request, outcome, why.remarks.as_deref(), refuse).await
    }
}

const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

impl Filter for Authentication {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let started = Instant::now();
        let authorization = authorization_of(request.headers()).into_owned();
        let bearer = Bearer::read(&authorization);
        let protocol = websocket_protocol::token(request.headers());
        // A token in the `Authorization` header takes precedence over one among the protocols.
        let (bearer_token, second_token) = match (bearer, &protocol) {
            (Bearer::Token(token), Ok(Some(protocol))) => (Some(token), Some(&*protocol.token)),
            (Bearer::Token(token), _) => (Some(token), None),
            (_, Ok(Some(protocol))) => (Some(&*protocol.token), None),
            _ => (None, None),
        };
        let mut found = self.user_of(&request, bearer_token).await;
        let mut is_protocol_used = !matches!(bearer, Bearer::Token(_));
        if found.is_err() && second_token.is_some() {
            found = self.user_of(&request, second_token).await;
            is_protocol_used = true;
        }
        // A malformed token is no anonymous request; other credentials are as good beside it as without it.
        if let (Err(why), true, Ok(Authenticated { user, .. })) = (&protocol, is_protocol_used, &found)
            && is_anonymous(user)
        {
            found = Err(InvalidCredentials::new(*why));
        }
        let Authenticated { user, remarks, .. } = match found {
            Ok(found) => found,
            Err(why) => return self.refuse(&request, &why).await,
        };
        let has_extra_space = bearer == Bearer::ExtraSpace;
        // Later filters and handlers do not need the credentials, and cannot leak them.
        let headers = request.headers_mut();
        headers.remove(header::AUTHORIZATION);
        for names in &self.request_headers {
            names.remove_from(headers);
        }
        if let (true, Ok(Some(ProtocolToken { others, .. }))) = (is_protocol_used, protocol) {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, others);
        }
        if is_anonymous(&user) {
            end_connection(&request);
        }
        pintle_offload::belongs_to(&user.name);
        request.extensions_mut().insert(user);
        if let Some(remarks) = &remarks {
            request.extensions_mut().insert(remarks.clone());
        }
        let took = started.elapsed();
        if let Some(arrival) = request.extensions_mut().get_mut::<Arrival>() {
            arrival.authentication = took;
        }
        self.metrics.filters().authentication.passed(took);
        let mut response = next.call(request).await;
        let remarks = remarks.iter().flat_map(|remarks| &remarks.warnings).copied();
        let warnings: Vec<&str> = has_extra_space.then_some(EXTRA_SPACE).into_iter().chain(remarks).collect();
        if !warnings.is_empty() {
            warn(response.headers_mut(), &warnings);
        }
        response
    }
}

/// Adds warnings in front of those of later filters and handlers.
fn warn(headers: &mut HeaderMap, texts: &[&str]) {
    let later: Vec<HeaderValue> = headers.get_all(header::WARNING).iter().cloned().collect();
    headers.remove(header::WARNING);
    let warnings = Warnings::default();
    texts.iter().for_each(|text| warnings.add(*text));
    warnings.write_to(headers);
    later.into_iter().for_each(|value| _ = headers.append(header::WARNING, value));
}

/// The `Authorization` header; empty without it. A token of other characters than ASCII is a token, too.
fn authorization_of(headers: &HeaderMap) -> Cow<'_, str> {
    let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(value.unwrap_or_default())
}

/// The bearer token in the `Authorization` header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bearer<'a> {
    Token(&'a str),
    /// More than one space before the token: the token is ignored.
    ExtraSpace,
    None,
}

impl Bearer<'_> {
    fn read(header: &str) -> Bearer<'_> {
        let mut parts = header.trim().splitn(3, ' ');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(scheme), Some(token), rest) if scheme.eq_ignore_ascii_case("bearer") => {
                match (token, rest) {
                    ("", Some(_)) => Bearer::ExtraSpace,
                    ("", None) => Bearer::None,
                    (token, _) => Bearer::Token(token),
                }
            }
            _ => Bearer::None,
        }
    }
}

/// The kinds of credentials in a request, for its audit event.
fn attempted(request: &Request) -> String {
    let header = authorization_of(request.headers());
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or_default();
    let is_basic = || {
        scheme.eq_ignore_ascii_case("basic") && base64::decode(rest).is_ok_and(|pair| pair.contains(&b':'))
    };
    let certificates = request.extensions().get::<PeerCertificates>();
    let methods = [
        (is_basic(), "basic"),
        (scheme.eq_ignore_ascii_case("bearer"), "bearer"),
        (
            query_of(request).first("access_token").is_some_and(|token| !token.trim().is_empty()),
            "access_token",
        ),
        (certificates.is_some_and(|certificates| !certificates.0.is_empty()), "x509"),
    ];
    let methods: Vec<&str> =
        methods.iter().filter(|(is_attempted, _)| *is_attempted).map(|(_, name)| *name).collect();
    match methods.is_empty() {
        true => "Authentication failed, no credentials provided".into(),
        false => format!("Authentication failed, attempted: {}", methods.join(", ")),
    }
}

fn unauthorized(request: &Request, why: &dyn std::fmt::Display) -> Response {
    tracing::warn!(error = %why, "unable to authenticate the request");
    end_connection(request);
    let query = query_of(request);
    negotiated_failure(&Status::unauthorized(), request.headers(), query.first("pretty"))
}

fn is_anonymous(user: &UserInfo) -> bool {
    user.name == ANONYMOUS || user.is_member_of(UNAUTHENTICATED)
}

/// Closes the HTTP/2 connection of an unauthenticated request: HTTP/2 lets a client cause much work with few bytes
/// (<https://nvd.nist.gov/vuln/detail/CVE-2023-44487>).
fn end_connection(request: &Request) {
    if enabled(Gate::UnauthenticatedHTTP2DOSMitigation)
        && request.version() == Version::HTTP_2
        && let Some(connection) = request.extensions().get::<ConnectionHandle>()
    {
        connection.go_away();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::RequestBody;
    use bytes::Bytes;
    use futures_util::FutureExt;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};

    #[test]
    fn tokens_are_read_as_the_reference_reads_them() {
        let check_bytes = |bytes: &[u8], expected: Option<&str>| {
            let headers =
                HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_bytes(bytes).unwrap())]);
            let header = authorization_of(&headers);
            let found = match Bearer::read(&header) {
                Bearer::Token(token) => Some(token),
                Bearer::ExtraSpace => Some("(space)"),
                Bearer::None => None,
            };
            assert_eq!(found, expected, "{}", bytes.escape_ascii());
        };
        let check = |text: &str, expected: Option<&str>| check_bytes(text.as_bytes(), expected);
        check("Bearer a", Some("a"));
        check("  bEARER a ", Some("a"));
        check("Bearer a b c", Some("a"));
        check("Bearer  a", Some("(space)"));
        check("Bearer ", None);
        check("Bearer", None);
        check("Basic YTpi", None);
        check("", None);
        check("Bearer \u{e9}", Some("\u{e9}"));
        check_bytes(b"Bearer \xff", Some("\u{fffd}"));
    }

    #[tokio::test]
    async fn the_http2_connection_of_an_unauthenticated_request_ends_with_its_gate_alone() {
        let ends = async |version: Version| {
            let connection = ConnectionHandle::new(10);
            let _active = connection.begin();
            let mut request = Request::new(RequestBody::Bytes(Bytes::new()));
            *request.version_mut() = version;
            request.extensions_mut().insert(connection.clone());
            end_connection(&request);
            connection.end().now_or_never().is_some()
        };
        assert!(ends(Version::HTTP_2).await);
        assert!(!ends(Version::HTTP_11).await);
        let _gates =
            override_gates(&FeatureGates::default().with(Gate::UnauthenticatedHTTP2DOSMitigation, false));
        assert!(!ends(Version::HTTP_2).await);
    }
}
