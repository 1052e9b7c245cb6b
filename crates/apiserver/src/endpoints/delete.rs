//! Serves deletes.

use super::{
    admission::Admission,
    body_kind::BodyKind,
    decode::decode_meta_kind,
    encoder::IncludeObject,
    request_scope::RequestScope,
    write::{encoder, respond_with},
};
use crate::base::{
    body::{Body, RequestBody},
    encoding::{encode_status, encode_status_with_code},
    negotiation::{Accepted, Transform},
    response::{Answered, Response, with_content_type},
};
use crate::{metrics::BodyVerb, registry::DeleteAnswer};
use pintle_admission::{Operation, RequestOptions};
use pintle_auth::authz::Attributes;
use pintle_machinery::{
    GroupVersionKind, Status, StatusDetails, Value, ValueExt,
    options::{FieldValidation, delete_options_from},
};
use pintle_registry::DeleteOptions;
use pintle_schema::Schema;
use pintle_telemetry::event;

/// Serves a DELETE of an object.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn delete(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let encoder = encoder(scope)?;
    let options = options(scope, body, BodyVerb::Delete).await?;
    let store = scope.store()?;
    if options.ignore_store_read_error {
        return delete_unreadable(scope, encoder.accepted).await;
    }
    let strategy = &scope.resource.resource.strategy;
    strategy
        .check_delete(&scope.info.name)
        .map_err(|why| Status::forbidden(&scope.info.group_resource(), &scope.info.name, why))?;
    scope.warnings.extend(strategy.warnings_on_delete(&options));
    let kind = scope.resource.resource.group_version_kind();
    let context = scope.context(options.dry_run);
    let admission = Admission {
        scope,
        operation: Operation::Delete,
        name: &scope.info.name,
        kind: &kind,
        context: &context,
        options: RequestOptions::Delete(&options),
    };
    event!("About to delete object from database");
    let deleted = store.delete(&context, &options, &admission).await?;
    event!("Object deleted from database");
    let code = match !deleted.gone && options.orphan_dependents == Some(false) {
        true => 202,
        false => 200,
    };
    match deleted.answer {
        DeleteAnswer::Object => return respond_with(&encoder, code, deleted.object, deleted.json.as_ref()),
        DeleteAnswer::EmptyObject => {
            let content_type = encoder.accepted.media_type.as_str();
            return Ok(with_content_type(code, content_type, Body::from(encoder.empty_answer()?)));
        }
        DeleteAnswer::Status => {}
    }
    if matches!(encoder.accepted.transform, Some((Transform::Table, _))) {
        // A status has no rows, but the parameter is read before.
        IncludeObject::parse(scope.query.first("includeObject"))?;
    }
    let content_type = encoder.accepted.media_type.as_str();
    let accepted = Accepted { transform: None, ..encoder.accepted };
    let status = deleted.status(&scope.resource.resource.group_resource());
    let mut response = with_content_type(code, content_type, encode_status(&status, &accepted));
    response.extensions_mut().insert(Answered::new(status));
    Ok(response)
}

/// Serves a DELETE of an object that cannot be read; the user needs a further permission for it.
async fn delete_unreadable(scope: &RequestScope<'_>, accepted: Accepted) -> Result<Response, Status> {
    const VERB: &str = "unsafe-delete-ignore-read-errors";
    let info = scope.info;
    let attributes = Attributes {
        group: &info.api_group,
        version: &info.api_version,
        resource: &info.resource,
        namespace: &info.namespace,
        name: &info.name,
        ..Attributes::of(scope.user, VERB)
    };
    let server = scope.server;
    if !server.unsafe_deletes || !server.authorizer.authorize(&attributes).await.is_allowed() {
        let why = format!("not permitted to do \"{VERB}\", reason: ");
        return Err(Status::forbidden(&info.group_resource(), &info.name, &why));
    }
    scope.store()?.delete_unreadable(scope.context(false).namespace, &info.name).await?;
    let details = StatusDetails {
        name: info.name.clone(),
        kind: scope.resource.resource.kind.clone(),
        ..StatusDetails::default()
    };
    let accepted = Accepted { transform: None, ..accepted };
    let status = Status::success(Some(details));
    let body = encode_status_with_code(&status, &accepted);
    let mut response = with_content_type(200, accepted.media_type.as_str(), body);
    response.extensions_mut().insert(Answered::new(status));
    Ok(response)
}

/// The `DeleteOptions`: from the body, or else from the query.
///
/// # Errors
/// 400 for a body or a query that has no valid options, and the errors of reading the body.
pub(super) async fn options(
    scope: &RequestScope<'_>,
    body: RequestBody,
    verb: BodyVerb,
) -> Result<DeleteOptions, Status> {
    let body = scope.read_body(body, verb).await?;
    let tree = match body.is_empty() {
        true => Value::Null,
        false => {
            let kind = GroupVersionKind::new("", "v1", "DeleteOptions");
            let schema = Schema::builtin()
                .by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.DeleteOptions")
                .ok_or_else(Status::no_such_resource)?;
            let tree =
                decode_meta_kind(scope, &body, BodyKind::built_in(&kind, schema), FieldValidation::Ignore)?;
            event!("Decoded delete options");
            if scope.audit.is_some() {
                let mut noted = tree.clone();
                // Kube-apiserver's audit events have the internal version here, whatever the client's version.
                noted.set("apiVersion", "meta.k8s.io/__internal");
                scope.note_body(&noted, schema);
            }
            tree
        }
    };
    delete_options_from(&tree, scope.query.pairs(), scope.server.unsafe_deletes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use pintle_machinery::{ValueExt, json};

    #[tokio::test]
    async fn a_delete_checks_its_preconditions() {
        let server = TestServer::start().await;
        let created = server.create_config_map("a", "x").await;
        let delete = async |body| server.send("DELETE", &format!("{CONFIG_MAPS}/a"), body).await;
        let (code, status) = delete(json!({"preconditions": {"uid": "other"}})).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
        let (code, status) = delete(json!({"preconditions": {"uid": created["metadata"]["uid"]}})).await;
        assert_eq!(
            (code, &status["status"], &status["details"]["name"]),
            (200, &json!("Success"), &json!("a"))
        );
        assert_eq!(delete(json!(null)).await.0, 404);
    }

    #[tokio::test]
    async fn options_may_be_of_any_version() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        // The deletion is a dry run.
        let delete = async |type_meta: &[(&str, &str)]| {
            let mut body = json!({"dryRun": ["All"]});
            type_meta.iter().for_each(|(name, value)| body.set(name, *value));
            server.send("DELETE", &format!("{CONFIG_MAPS}/a"), body).await
        };
        for version in ["v1", "batch/v1", "meta.k8s.io/v1"] {
            assert_eq!(delete(&[("apiVersion", version)]).await.0, 200, "{version}");
            assert_eq!(
                delete(&[("apiVersion", version), ("kind", "DeleteOptions")]).await.0,
                200,
                "{version}"
            );
        }
        let (code, status) = delete(&[("apiVersion", "a/b/c"), ("kind", "DeleteOptions")]).await;
        assert_eq!((code, &status["message"]), (400, &json!("unexpected GroupVersion string: a/b/c")));
    }
}
