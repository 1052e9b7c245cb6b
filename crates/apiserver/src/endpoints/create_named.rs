//! Serves creates through a subresource (bindings, evictions, tokens) and of kinds that are not stored (reviews).

use super::{
    action::method_not_allowed,
    admission::Admission,
    body_kind::BodyKind,
    decode::decode_with_versions,
    encoder::{partial, partial_schema},
    request_scope::RequestScope,
    write::{DedupTime, dedup_owner_references, set_namespace},
};
use crate::base::{
    body::{Body, RequestBody},
    encoding::encode,
    negotiation::{Accepted, Offers, content_type},
    response::{Answered, Response, with_content_type},
};
use crate::metrics::BodyVerb;
use bytes::Bytes;
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{
    GroupVersion, GroupVersionKind, Status, Value, ValueExt,
    managed_fields::{FieldManager, OneVersion},
    meta::ObjectMeta,
    options::WriteOptions,
};
use pintle_registry::{NamedCreater, SubresourceKind};
use pintle_schema::{Schema, SchemaRef, default_by_schema};
use std::borrow::Cow;

/// Serves a POST to a subresource that supports create.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn create(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let subresource = scope.resource.resource.subresource(&scope.info.subresource);
    match subresource.map(|subresource| &subresource.kind) {
        Some(SubresourceKind::Create { kind, other_versions, creater }) => {
            serve(scope, body, kind, other_versions, &**creater).await
        }
        _ => Err(method_not_allowed()),
    }
}

/// Serves a POST whose body is handed to `creater`; the body may be in other versions of the kind.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn serve(
    scope: &RequestScope<'_>,
    body: RequestBody,
    kind: &GroupVersionKind,
    other_versions: &[String],
    creater: &dyn NamedCreater,
) -> Result<Response, Status> {
    let accepted = scope.accepted(Offers::Answer)?;
    content_type(scope.headers, scope.server.media_types)?;
    let body = scope.read_body(body, BodyVerb::Create).await?;
    let options = WriteOptions::parse(scope.query.pairs(), "CreateOptions")?;
    let schema = Schema::builtin()
        .by_kind(&kind.group, &kind.version, &kind.kind)
        .ok_or_else(Status::no_such_resource)?;
    let (mut object, own_version) = decode_with_versions(
        scope,
        &body,
        BodyKind::built_in(kind, schema),
        other_versions,
        options.field_validation.unwrap_or_default(),
    )?;
    default_by_schema(&mut object, schema);
    creater.set_defaults(&mut object);
    if scope.audit.is_some() {
        let mut noted = object.clone();
        noted.set("apiVersion", own_version.to_string());
        scope.note_body(&noted, schema);
    }
    set_namespace(scope, &mut object)?;
    if scope.info.subresource.is_empty() || !creater.keeps_system_metadata() {
        for field in SYSTEM_METADATA {
            object.remove_at(field);
        }
    }
    dedup_owner_references(scope, &mut object, DedupTime::OfBody);
    manage(scope, &options.field_manager, kind, schema, &mut object);
    let context = scope.context(options.dry_run);
    let name = match scope.info.name.as_str() {
        "" => object.name(),
        name => name,
    };
    let name = name.to_owned();
    let admission = Admission {
        scope,
        operation: Operation::Create,
        name: &name,
        kind,
        context: &context,
        options: RequestOptions::Write(&options),
    };
    let mut object = admission.admit(object, None).await?;
    creater.prepare(&context, &mut object).await?;
    let remarks = creater.remarks(&context, &object).await?;
    scope.warnings.extend(remarks.warnings);
    annotate(scope, remarks.audit_annotations);
    admission.validate(&object, None).await?;
    let warnings = creater.warnings(&context, &object);
    context.check_client()?;
    let answer = creater.create(&context, object).await?;
    scope.warnings.extend(warnings);
    annotate(scope, creater.audit_annotations(&answer));
    let bytes = encode_answer(scope, &answer, &accepted)?;
    let mut response = with_content_type(201, accepted.media_type.as_str(), Body::from(bytes));
    if answer.str_at("kind") == "Status" {
        response.extensions_mut().insert(Answered::new(Status::success(None)));
    }
    Ok(response)
}

fn annotate(scope: &RequestScope<'_>, annotations: Vec<(&'static str, String)>) {
    if let Some(audit) = &scope.audit {
        for (key, value) in annotations {
            audit.annotate(key, value);
        }
    }
}

/// Encodes the object of an answer in the accepted form; a `Status` has only its own.
fn encode_answer(scope: &RequestScope<'_>, answer: &Value, accepted: &Accepted) -> Result<Bytes, Status> {
    let (_, version) = match &accepted.transform {
        Some(transform) if answer.str_at("kind") != "Status" => transform,
        _ => return encode(answer, answer_schema(answer)?, accepted),
    };
    match &accepted.refusal {
        Some(refusal) => Err((**refusal).clone()),
        None => encode(&partial(&scope.resource.resource, answer, version), partial_schema(), accepted),
    }
}

/// Metadata that only the server sets.
const SYSTEM_METADATA: [&str; 5] = [
    "metadata.creationTimestamp",
    "metadata.uid",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.selfLink",
];

/// Records the managed fields of a body: the response may be the same object, completed. There is no earlier state and
/// no other version of it.
fn manage(
    scope: &RequestScope<'_>,
    field_manager: &str,
    kind: &GroupVersionKind,
    schema: SchemaRef<'_>,
    object: &mut Value,
) {
    let manager = match field_manager {
        "" => Cow::Owned(scope.user_agent_manager()),
        manager => Cow::Borrowed(manager),
    };
    FieldManager {
        manager: &manager,
        kind: &kind.kind,
        api_version: &kind.group_version().to_string(),
        subresource: &scope.info.subresource,
        now: scope.now,
        schema,
        reset_fields: &[],
        empty_fields: &[],
        versions: &OneVersion,
    }
    .update(None, object);
}

/// The schema of the response's own kind: a `Status`, or the body's kind, completed.
fn answer_schema(answer: &Value) -> Result<SchemaRef<'static>, Status> {
    let version = GroupVersion::parse(answer.str_at("apiVersion")).unwrap_or_default();
    Schema::builtin()
        .by_kind(&version.group, &version.version, answer.str_at("kind"))
        .ok_or_else(|| Status::internal_error("an answer of a kind without a schema"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use crate::base::{body::RequestBody, client::Client};
    use http::{Request, header};
    use pintle_machinery::json;

    #[tokio::test]
    async fn a_named_create_gets_a_body_of_its_own_kind() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}/a/eviction");
        let body = json!({
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": {"name": "a", "uid": "chosen"},
        });
        let (code, answer) = server.send("POST", &uri, body.clone()).await;
        assert_eq!((code, &answer["kind"]), (201, &json!("Eviction")));
        let metadata = &answer["metadata"];
        assert_eq!((&metadata["namespace"], &metadata["uid"]), (&json!("default"), &json!(null)));
        // Another version of the body is also that of messages about it.
        let mut older = body.clone();
        older["apiVersion"] = json!("policy/v1beta1");
        assert_eq!(server.send("POST", &uri, older.clone()).await.0, 201);
        older["deleteOptions"] = json!({"dryRun": {}});
        let (code, status) = server.send("POST", &uri, older).await;
        let message = status["message"].as_str().unwrap();
        let start = "Eviction in version \"v1beta1\" cannot be handled as a Eviction: json: cannot unmarshal";
        assert!(code == 400 && message.starts_with(start), "{message}");
        let mut elsewhere = body;
        elsewhere["metadata"]["namespace"] = json!("other");
        assert_eq!(server.send("POST", &uri, elsewhere).await.0, 400);
    }

    #[tokio::test]
    async fn an_action_is_not_taken_for_a_client_that_left() {
        let server = TestServer::start().await;
        let body = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}});
        let (waits, client) = Client::new();
        let send = async || {
            let request = Request::post(format!("{CONFIG_MAPS}/a/eviction"))
                .header(header::CONTENT_TYPE, "application/json")
                .extension(client.clone());
            let body = RequestBody::Bytes(body.to_string().into());
            server.serve(request.body(body).unwrap()).await.status().as_u16()
        };
        assert_eq!(send().await, 201);
        drop(waits);
        assert_eq!(send().await, 504);
    }
}
