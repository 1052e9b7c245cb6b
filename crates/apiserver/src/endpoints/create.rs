//! Serves creates.

use super::{
    decode::decode,
    request_scope::RequestScope,
    write::{AdmissionValidation, dedup_owner_references, encoder, respond, set_namespace},
};
use crate::base::{body::RequestBody, response::Response};
use pintle_admission::Operation;
use pintle_machinery::{Status, ValueExt, options::WriteOptions};

/// Serves a POST to a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn create(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let encoder = encoder(scope)?;
    let options = WriteOptions::parse(scope.query.pairs(), "CreateOptions")?;
    let body = body.read().await?;
    let resource = &scope.resource.resource;
    let kind = resource.group_version_kind();
    let schema = scope.resource.schema.get();
    let object = decode(scope, &body, &kind, schema, options.field_validation)?;
    scope.note_object(&object);
    let mut object = scope.resource.to_storage(object);
    set_namespace(scope, &mut object)?;
    dedup_owner_references(scope, &mut object);
    let store = scope.store()?;
    store.set_defaults(&mut object);
    // These fields are set by the server alone and have no field manager.
    object.remove_at("metadata.deletionTimestamp");
    object.remove_at("metadata.deletionGracePeriodSeconds");
    scope.managed_write(&options.field_manager).update(None, &mut object).await;
    let context = scope.context(options.dry_run);
    let object = scope.admit(Operation::Create, &kind, &context, object, None).await?;
    let written = store
        .create(
            &context,
            object,
            &AdmissionValidation { scope, operation: Operation::Create, kind: &kind, context: &context },
            &scope.warnings,
        )
        .await?;
    respond(&encoder, 201, written)
}
