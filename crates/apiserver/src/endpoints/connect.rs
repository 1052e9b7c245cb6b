//! Serves connects: streams and proxied requests to a node, a pod or a service.

mod proxied;
mod stream;
mod target;

use super::{action::method_not_allowed, admission::Admission, request_scope::RequestScope};
use crate::{
    base::{
        negotiation::{self, Accepted, Answers, Offers, Route},
        request::{Request, path_of},
        response::{Response, empty},
    },
    filters::attributes_of,
    proxying::Interruptions,
    streaming::{Messages, Text},
};
use http::StatusCode;
use pintle_admission::{Operation, RequestOptions};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, options::connect_options};
use pintle_registry::{ConnectOptions, ConnectService, Connecter, Destination, SubresourceKind};
use pintle_schema::Schema;
use pintle_websocket::is_websocket_request;
use std::net::IpAddr;
use target::{query_of, target_of};

/// The declaration of a connect.
struct Declared<'a> {
    options: &'a ConnectOptions,
    is_proxy: bool,
    connecter: &'a dyn Connecter,
}

/// Serves streams and proxied requests.
///
/// # Errors
/// 400 or 422 for invalid options, 403 when the user may not do it, the errors of admission, of the destination's choice
/// and of the connection to it.
pub(super) async fn connect(scope: &RequestScope<'_>, request: Request) -> Result<Response, Status> {
    let subresource = scope.resource.resource.subresource(&scope.info.subresource);
    let Some(SubresourceKind::Connect { kind, options, is_proxy, connecter, .. }) =
        subresource.map(|subresource| &subresource.kind)
    else {
        return Err(method_not_allowed());
    };
    let declared = Declared { options, is_proxy: *is_proxy, connecter: &**connecter };
    let path = path_of(request.uri()).into_owned();
    // A subresource that discovery lists under another kind than that of its options is a read, such as a log.
    let (options, accepted) = match *kind == options.kind {
        true => {
            if scope.query.first("dryRun").is_some() {
                return Err(Status::bad_request("dryRun is not supported"));
            }
            (admit(scope, &declared, decode(scope, &declared, &path)?).await?, None)
        }
        false => {
            let accepted = negotiate(scope)?;
            (decode(scope, &declared, &path)?, Some(accepted))
        }
    };
    authorize(scope, declared.connecter).await?;
    let context = scope.context(false);
    let destination = declared.connecter.connect(&context, &options).await?;
    accepted.map_or(Ok(()), refuse_transform)?;
    let Some(destination) = destination else {
        return Ok(empty(204));
    };
    match destination.service {
        ConnectService::Text { follow } => text(scope, request, &destination, follow, &declared).await,
        ConnectService::Upgrade(stream) => stream::answer(scope, request, &destination, stream).await,
        ConnectService::Proxy => proxied::answer(scope, request, &destination, &path).await,
        ConnectService::ProxyElsewhere => {
            check_host(&destination.location.host).await?;
            proxied::answer(scope, request, &destination, &path).await
        }
    }
}

/// Negotiates the form of a read, although its response is always text.
fn negotiate(scope: &RequestScope<'_>) -> Result<Accepted, Status> {
    let answers = Answers {
        offers: Offers::Answer,
        route: Some(Route::WithText),
        has_protobuf: scope.resource.resource.model.protobuf,
        media_types: scope.server.media_types,
        go_type: &|| "rest.LocationStreamer".to_owned(),
    };
    negotiation::accepted_of(scope.headers, scope.query.first("pretty"), answers)
}

/// Refuses partial metadata, which text does not have. Errors of the request come first.
fn refuse_transform(accepted: Accepted) -> Result<(), Status> {
    match (accepted.refusal, accepted.transform) {
        (Some(refusal), _) => Err(*refusal),
        (None, Some(_)) => Err(Status::unknown("object does not implement the Object interfaces")),
        (None, None) => Ok(()),
    }
}

/// Decodes and validates the options. The rest of the path of a proxied request is one of them.
fn decode(scope: &RequestScope<'_>, declared: &Declared<'_>, path: &str) -> Result<Value, Status> {
    let kind = &declared.options.kind;
    let schema = Schema::builtin()
        .by_kind(&kind.group, &kind.version, &kind.kind)
        .ok_or_else(Status::no_such_resource)?;
    let mut options = connect_options(scope.query.pairs(), schema)?;
    if declared.is_proxy {
        options.set("path", rest_of(&scope.info.rest, path));
    }
    let errors = (declared.options.validate)(&options);
    match errors.is_empty() {
        true => Ok(options),
        false => Err(Status::invalid(&kind.group_kind(), &scope.info.name, &errors)),
    }
}

/// The rest of the path behind the subresource, with the slashes at its beginning and its end.
fn rest_of(rest: &[String], path: &str) -> String {
    let mut joined = rest.join("/");
    if !joined.is_empty() && !joined.starts_with('/') {
        joined.insert(0, '/');
    }
    if path.ends_with('/') && !joined.ends_with('/') {
        joined.push('/');
    }
    joined
}

/// Runs the admission chain on the options, before anything is read.
async fn admit(
    scope: &RequestScope<'_>,
    declared: &Declared<'_>,
    mut options: Value,
) -> Result<Value, Status> {
    let kind = &declared.options.kind;
    options.set("kind", kind.kind.as_str());
    options.set("apiVersion", kind.group_version().to_string());
    let context = scope.context(false);
    let admission = Admission {
        scope,
        operation: Operation::Connect,
        name: &scope.info.name,
        kind,
        context: &context,
        options: RequestOptions::None,
    };
    let options = admission.admit(options, None).await?;
    admission.validate(&options, None).await?;
    Ok(options)
}

/// Checks the verb that the user needs besides that of the method. The refusal has no text of its own.
async fn authorize(scope: &RequestScope<'_>, connecter: &dyn Connecter) -> Result<(), Status> {
    let Some(verb) = connecter.required_verb().filter(|verb| *verb != scope.info.verb) else {
        return Ok(());
    };
    let attributes = attributes_of(scope.user, verb, scope.info);
    let verdict = scope.server.authorizer.authorize(&attributes).await;
    if verdict.is_allowed() {
        return Ok(());
    }
    match verdict.error.is_empty() {
        true => Err(Status::forbidden(&scope.info.group_resource(), &scope.info.name, &verdict.reason)),
        false => Err(Status::unknown(verdict.error)),
    }
}

/// Checks that a host is no name of this server or of its surroundings.
async fn check_host(host: &str) -> Result<(), Status> {
    let addresses: Vec<IpAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => match tokio::net::lookup_host((host, 0)).await {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(_) => return Err(Status::bad_request(format!("lookup {host}: no such host"))),
        },
    };
    match addresses.iter().all(|address| pintle_registry::is_proxyable(*address)) {
        _ if addresses.is_empty() => Err(Status::bad_request("no addresses for hostname")),
        true => Ok(()),
        false => Err(Status::bad_request("address not allowed")),
    }
}

/// Streams a text, to clients that ask for WebSocket in messages.
async fn text(
    scope: &RequestScope<'_>,
    request: Request,
    destination: &Destination,
    follow: bool,
    declared: &Declared<'_>,
) -> Result<Response, Status> {
    let target = target_of(destination, &query_of(destination), String::new());
    let uri = target.map_err(|why| {
        let location = &destination.location;
        let url = format!("{}://{}{}", location.scheme, location.authority(), location.path);
        Status::unknown(format!("Get {}: {why}", quote(&url)))
    })?;
    let client = scope.server.transports.client(destination.transport, destination.location.scheme);
    let resource = scope.resource.resource.group_resource();
    let in_messages = is_websocket_request(scope.headers);
    let text = Text {
        client: &client,
        uri: uri.uri,
        follow: follow || in_messages,
        resource: GroupResource::new(
            resource.group.clone(),
            format!("{}/{}", resource.resource, scope.info.subresource),
        ),
        name: &scope.info.name,
    };
    let response = text.stream(Interruptions::of(&request)).await.map_err(|failed| {
        if failed.is_untrusted {
            declared.connecter.note_untrusted();
        }
        failed.status
    })?;
    if !in_messages || response.status() != StatusCode::OK {
        return Ok(response);
    }
    // The handshake comes last: failures are told by HTTP.
    Ok(match Messages::read(scope.headers) {
        Ok(messages) => messages.response(response.into_body()),
        Err(refused) => *refused,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::testing::TestServer, *};
    use http_body_util::BodyExt as _;
    use pintle_machinery::json;

    #[tokio::test]
    async fn a_connect_needs_its_object() {
        let server = TestServer::start().await;
        let pods = "/api/v1/namespaces/default/pods";
        let log = format!("{pods}/a/log");
        let (code, status) = server.send("GET", &log, json!(null)).await;
        assert_eq!((code, &status["message"]), (404, &json!("pods \"a\" not found")));
        assert_eq!(server.send("POST", pods, json!({"metadata": {"name": "a"}})).await.0, 201);
        let response = server.respond("GET", &log, "", "").await;
        assert_eq!(response.status(), 204);
        assert_eq!(response.headers()["cache-control"], "no-cache, private");
        assert_eq!(server.send("GET", &format!("{log}/more"), json!(null)).await.0, 404);
    }

    #[tokio::test]
    async fn text_has_no_partial_metadata() {
        let server = TestServer::start().await;
        let pods = "/api/v1/namespaces/default/pods";
        let log = format!("{pods}/a/log");
        let get = async |kind: &str| {
            let accept = format!("application/json;as={kind};v=v1;g=meta.k8s.io");
            let headers = [(http::header::ACCEPT, accept.as_str())];
            let response = server.respond_with("GET", &log, &headers, "").await;
            let (code, body) = (response.status().as_u16(), response.into_body().collect().await.unwrap());
            (code, serde_json::from_slice::<Value>(&body.to_bytes()).unwrap()["message"].clone())
        };
        assert_eq!(get("PartialObjectMetadata").await, (404, json!("pods \"a\" not found")));
        assert_eq!(server.send("POST", pods, json!({"metadata": {"name": "a"}})).await.0, 201);
        let message = "object does not implement the Object interfaces";
        assert_eq!(get("PartialObjectMetadata").await, (500, json!(message)));
        let message = "you requested PartialObjectMetadataList, but the requested object is not a list \
                       (*rest.LocationStreamer)";
        assert_eq!(get("PartialObjectMetadataList").await, (406, json!(message)));
        assert_eq!(get("Table").await.0, 406);
    }

    #[tokio::test]
    async fn options_are_checked_before_the_object() {
        let server = TestServer::start().await;
        let log = "/api/v1/namespaces/default/pods/a/log?tailLines=few";
        let (code, status) = server.send("GET", log, json!(null)).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{status}");
        assert_eq!(server.send("POST", log, json!(null)).await.0, 405);
    }

    #[test]
    fn the_rest_of_a_path_keeps_its_slashes() {
        let check = |rest: &[&str], path: &str, expected: &str| {
            let rest: Vec<String> = rest.iter().copied().map(str::to_owned).collect();
            assert_eq!(rest_of(&rest, path), expected);
        };
        check(&[], "/api/v1/nodes/n/proxy", "");
        check(&[], "/api/v1/nodes/n/proxy/", "/");
        check(&["a", "b"], "/api/v1/nodes/n/proxy/a/b", "/a/b");
        check(&["", "a", "", "b"], "/api/v1/nodes/n/proxy//a//b//", "/a//b/");
    }

    #[tokio::test]
    async fn names_of_this_machine_are_refused() {
        let check = async |host: &str, expected: &str| {
            assert_eq!(
                check_host(host).await.map_or_else(|status| status.message, |()| String::new()),
                expected
            );
        };
        check("10.0.0.1", "").await;
        check("fd00::1", "").await;
        for own in ["127.0.0.1", "localhost", "169.254.169.254", "::1", "0.0.0.0"] {
            check(own, "address not allowed").await;
        }
        check("", "lookup : no such host").await;
        check("no-such-name.invalid", "lookup no-such-name.invalid: no such host").await;
    }
}
