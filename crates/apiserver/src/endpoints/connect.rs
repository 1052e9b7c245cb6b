//! Serves connects: streams and proxied requests to a node, a pod or a service.

use super::{action::method_not_allowed, admission::Admission, request_scope::RequestScope};
use crate::base::response::Response;
use pintle_admission::{Operation, RequestOptions};
use pintle_cacher::Freshness;
use pintle_machinery::{Status, StatusReason, ValueExt, options::connect_options};
use pintle_registry::SubresourceKind;
use pintle_schema::Schema;

/// Serves streams and proxied requests. They need the network of a node's kubelet or a pod, which this server cannot
/// reach yet, so that every such request fails.
///
/// # Errors
/// 400 or 422 for invalid options, 404 for a missing object, a not-implemented `Status` otherwise.
pub(super) async fn connect(scope: &RequestScope<'_>) -> Result<Response, Status> {
    admit(scope).await?;
    let store = scope.store()?;
    let namespace = if store.resource().is_namespaced() { scope.info.namespace.as_str() } else { "" };
    let key = store.object_key(namespace, &scope.info.name)?;
    let object = store.find(&key, Freshness::Consistent).await?;
    if object.is_none() {
        return Err(Status::not_found(&scope.resource.resource.group_resource(), &scope.info.name));
    }
    Err(Status::failure(501, StatusReason::Unknown, format!("{} is not served yet", scope.info.subresource)))
}

/// Decodes and validates the options and runs the admission chain on them, before the object is read.
///
/// # Errors
/// 400 or 422 for invalid options, and the `Status` of a plugin that rejects the request.
async fn admit(scope: &RequestScope<'_>) -> Result<(), Status> {
    let subresource = scope.resource.resource.subresource(&scope.info.subresource);
    let Some(SubresourceKind::Connect { options, kind: answered, .. }) =
        subresource.map(|subresource| &subresource.kind)
    else {
        return Err(method_not_allowed());
    };
    let kind = &options.kind;
    let schema = Schema::builtin()
        .by_kind(&kind.group, &kind.version, &kind.kind)
        .ok_or_else(Status::no_such_resource)?;
    let mut given = connect_options(scope.query.pairs(), schema)?;
    let errors = (options.validate)(&given);
    if !errors.is_empty() {
        return Err(Status::invalid(&kind.group_kind(), &scope.info.name, &errors));
    }
    // What discovery lists under another kind than that of its options is a read, such as a log.
    if answered != kind {
        return Ok(());
    }
    given.set("kind", kind.kind.as_str());
    given.set("apiVersion", kind.group_version().to_string());
    let context = scope.context(false);
    let admission = Admission {
        scope,
        operation: Operation::Connect,
        name: &scope.info.name,
        kind,
        context: &context,
        options: RequestOptions::None,
    };
    let given = admission.admit(given, None).await?;
    admission.validate(&given, None).await
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestServer;
    use serde_json::json;

    #[tokio::test]
    async fn a_connect_needs_its_object() {
        let server = TestServer::start().await;
        let pods = "/api/v1/namespaces/default/pods";
        let log = format!("{pods}/a/log");
        let (code, status) = server.send("GET", &log, json!(null)).await;
        assert_eq!((code, &status["message"]), (404, &json!("pods \"a\" not found")));
        assert_eq!(server.send("POST", pods, json!({"metadata": {"name": "a"}})).await.0, 201);
        let (code, status) = server.send("GET", &log, json!(null)).await;
        assert_eq!((code, &status["message"]), (501, &json!("log is not served yet")));
    }

    #[tokio::test]
    async fn options_are_checked_before_the_object() {
        let server = TestServer::start().await;
        let log = "/api/v1/namespaces/default/pods/a/log?tailLines=few";
        let (code, status) = server.send("GET", log, json!(null)).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{status}");
        assert_eq!(server.send("POST", log, json!(null)).await.0, 405);
    }
}
