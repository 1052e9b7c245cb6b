//! Serves updates by PUT.

use super::{
    admission::Admission,
    body_kind::BodyKind,
    decode::decode,
    request_scope::RequestScope,
    write::{DedupTime, check_name, dedup_owner_references, encoder, respond, set_namespace},
};
use crate::metrics::BodyVerb;
use crate::{
    base::{body::RequestBody, response::Response},
    registry::{Transform, Upsert},
};
use bytes::Bytes;
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{
    GroupVersionKind, Status, Value, ValueExt, json,
    meta::ObjectMeta,
    options::{FieldValidation, Preconditions, WriteOptions},
};
use pintle_registry::BoxFuture;
use pintle_telemetry::event;

/// Serves a PUT of an object, or of a subresource of it.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn update(
    scope: &RequestScope<'_>,
    body: RequestBody,
    subresource: &str,
) -> Result<Response, Status> {
    let encoder = encoder(scope)?;
    let body = scope.read_body(body, BodyVerb::Update).await?;
    let options = WriteOptions::parse(scope.query.pairs(), "UpdateOptions")?;
    let kind = scope.resource.resource.group_version_kind();
    event!("About to convert to expected version");
    let object = read(scope, &body, &kind, options.field_validation.unwrap_or_default())?;
    event!("Conversion done");
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    // An object with another UID is another object: 409, whatever other errors there are.
    let preconditions = Preconditions::uid(object.uid()).without_empty();
    let upsert = if subresource.is_empty() { Upsert::Strategy } else { Upsert::Never };
    let mut transform = Put {
        admission: Admission {
            scope,
            operation: Operation::Update,
            name: &scope.info.name,
            kind: &kind,
            context: &context,
            options: RequestOptions::Write(&options),
        },
        body: &body,
        object: Some(object),
        field_validation: options.field_validation.unwrap_or_default(),
        field_manager: &options.field_manager,
    };
    event!("About to store object in database");
    let updated = store
        .update(
            &context,
            store.strategy(subresource)?,
            &preconditions,
            upsert,
            &mut transform,
            &scope.warnings,
        )
        .await?;
    event!("Write to database call succeeded", "len" = body.len() as u64);
    respond(&encoder, if updated.created { 201 } else { 200 }, updated.written)
}

/// Decodes and defaults the object of a body, in the storage version.
fn read(
    scope: &RequestScope<'_>,
    body: &Bytes,
    kind: &GroupVersionKind,
    field_validation: FieldValidation,
) -> Result<Value, Status> {
    let object = decode(scope, body, BodyKind::of(scope.resource, kind), field_validation)?;
    scope.note_object(&object);
    let mut object = scope.resource.to_storage(object);
    note_reset(scope, &mut object);
    set_namespace(scope, &mut object)?;
    check_name(&object, &scope.info.name)?;
    dedup_owner_references(scope, &mut object, DedupTime::OfBody);
    scope.store()?.set_defaults_of_body(&mut object, &scope.empty_fields);
    Ok(object)
}

/// Records that the body has an empty list of managed fields, which requests their reset. A tree holds no empty lists;
/// a list with one empty entry requests the same.
fn note_reset(scope: &RequestScope<'_>, object: &mut Value) {
    let resets = scope.resource.resource.model.empty_managed_fields_reset();
    if resets && scope.empty_fields.contains("metadata.managedFields") {
        object.set("metadata.managedFields", json!([{}]));
    }
}

struct Put<'a> {
    admission: Admission<'a>,
    body: &'a Bytes,
    /// The decoded body, for the first attempt; later attempts decode it again, which is cheaper than a copy each time.
    object: Option<Value>,
    field_validation: FieldValidation,
    field_manager: &'a str,
}

impl Transform for Put<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        let Admission { scope, kind, .. } = self.admission;
        Box::pin(async move {
            let mut new = match self.object.take() {
                Some(object) => object,
                None => read(scope, self.body, kind, self.field_validation)?,
            };
            scope.managed_write(self.field_manager).update(old, &mut new).await;
            self.admission.of_update(old).admit(new, old).await
        })
    }

    fn may_drop_managed_fields(&self) -> bool {
        true
    }

    fn validate<'a>(
        &'a mut self,
        new: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if old.is_none() {
                self.admission.scope.check_create().await?;
            }
            self.admission.of_update(old).validate(new, old).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer, config_map};
    use pintle_machinery::json;

    #[tokio::test]
    async fn an_update_replaces_the_object_of_its_revision() {
        let server = TestServer::start().await;
        let created = server.create_config_map("a", "x").await;
        let put = async |body| server.send("PUT", &format!("{CONFIG_MAPS}/a"), body).await;
        let mut new = created.clone();
        new["data"] = json!({"b": "2"});
        let (code, updated) = put(new.clone()).await;
        assert_eq!((code, &updated["data"]), (200, &json!({"b": "2"})));
        assert_ne!(updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
        // The revision is outdated now.
        new["data"] = json!({"c": "3"});
        let (code, status) = put(new).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    }

    #[tokio::test]
    async fn the_name_of_an_updated_object_is_that_of_the_path() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |name: &str, message: &str| {
            let (code, status) = server.send("PUT", &format!("{CONFIG_MAPS}/a"), config_map(name, "x")).await;
            assert_eq!((code, status["message"].as_str().unwrap()), (400, message));
        };
        check("b", "the name of the object (b) does not match the name on the URL (a)").await;
        check("", "the name of the object (a based on URL) was undeterminable: name must be provided").await;
    }

    #[tokio::test]
    async fn a_subresource_is_written_under_its_own_strategy() {
        const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
        let server = TestServer::start().await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
        let (code, mut object) = server.send("POST", DEPLOYMENTS, deployment).await;
        assert_eq!(code, 201, "{object}");
        object["spec"]["replicas"] = json!(5);
        object["status"] = json!({"readyReplicas": 1});
        let uri = format!("{DEPLOYMENTS}/web/status");
        let (code, written) = server.send("PUT", &uri, object).await;
        assert_eq!(
            (code, &written["spec"]["replicas"], &written["status"]["readyReplicas"]),
            (200, &json!(2), &json!(1))
        );
        assert_eq!(server.send("GET", &uri, json!(null)).await, (200, written));
        assert_eq!(server.send("DELETE", &uri, json!(null)).await.0, 405);
    }
}
