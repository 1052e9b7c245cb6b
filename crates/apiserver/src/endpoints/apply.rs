//! Server-side apply: a PATCH with the fields that the field manager wants to own
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).

use super::{
    admission::Admission,
    body_kind::BodyKind,
    request_scope::RequestScope,
    write::{check_name, encoder, respond, set_namespace},
};
use crate::metrics::BodyVerb;
use crate::{
    base::{body::RequestBody, negotiation::MediaType, response::Response},
    registry::{Transform, Upsert},
};
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{
    Status, Value,
    codec::{StrictProblem, cbor, json, yaml},
    managed_fields::{is_same_but_owners, take_owners},
    meta::ObjectMeta,
    options::{FieldValidation, Preconditions, WriteOptions},
};
use pintle_registry::BoxFuture;

/// Serves an apply to an object, or to a subresource of it.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn apply(
    scope: &RequestScope<'_>,
    body: RequestBody,
    media_type: MediaType,
    subresource: &str,
) -> Result<Response, Status> {
    let encoder = encoder(scope)?;
    let body = scope.read_body(body, BodyVerb::Patch).await?;
    let options = WriteOptions::parse_apply(scope.query.pairs())?;
    scope.note_patch(&body);
    let config = Configuration::parse(&body, media_type)?;
    let kind = scope.resource.resource.group_version_kind();
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    let admission = Admission {
        scope,
        operation: Operation::Update,
        name: &scope.info.name,
        kind: &kind,
        context: &context,
        options: RequestOptions::Write(&options),
    };
    let mut transform = ApplyTransform { admission, config: &config, options: &options };
    let upsert = if subresource.is_empty() { Upsert::Always } else { Upsert::Never };
    let updated = store
        .update(
            &context,
            store.strategy(subresource)?,
            &Preconditions::default(),
            upsert,
            &mut transform,
            &scope.warnings,
        )
        .await?;
    respond(&encoder, if updated.created { 201 } else { 200 }, updated.written)
}

/// The applied configuration, and the duplicate fields in it.
pub(super) struct Configuration {
    pub(super) object: Value,
    problems: Vec<StrictProblem>,
}

impl Configuration {
    /// Parses a body.
    ///
    /// # Errors
    /// 400 when the body is not YAML or CBOR, as the media type says, or not an object.
    pub(super) fn parse(body: &[u8], media_type: MediaType) -> Result<Configuration, Status> {
        if media_type == MediaType::Cbor {
            // The reference's handler names YAML here, too.
            let object = cbor::decode_any_body(body)
                .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
            return Ok(Configuration { object, problems: Vec::new() });
        }
        let failed = |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding YAML: {why}"));
        let converted = yaml::to_json(body)
            .map_err(|error| failed(&format_args!("error converting YAML to JSON: {error}")))?;
        let object: Value = json::decode_any(&converted.json).map_err(|error| failed(&error))?;
        let found = match &object {
            Value::Object(_) | Value::Null => None,
            Value::Bool(_) => Some("bool"),
            Value::Number(_) => Some("number"),
            Value::String(_) => Some("string"),
            Value::Array(_) => Some("array"),
        };
        if let Some(found) = found {
            return Err(failed(&format_args!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            )));
        }
        Ok(Configuration { object, problems: converted.problems })
    }

    /// Rejects duplicate fields or warns of them, as field validation demands; runs after all other checks of the
    /// apply.
    ///
    /// # Errors
    /// 400 with `Strict` validation.
    pub(super) fn check_strictly(
        &self,
        scope: &RequestScope<'_>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let Some(problem) = self.problems.first() else { return Ok(()) };
        match options.field_validation.unwrap_or_default() {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => scope.warnings.extend(problem.warnings()),
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {problem}"
                )));
            }
        }
        Ok(())
    }
}

struct ApplyTransform<'a> {
    admission: Admission<'a>,
    config: &'a Configuration,
    options: &'a WriteOptions,
}

impl ApplyTransform<'_> {
    /// The object with the configuration applied, in the storage version.
    async fn applied(&self, old: Option<&Value>) -> Result<Value, Status> {
        let scope = self.admission.scope;
        let write = scope.managed_write(&self.options.field_manager);
        let config = &self.config.object;
        let force = self.options.force;
        let mut is_unchanged = false;
        let applied = match old {
            Some(old) if scope.resource.is_storage_version() => write.apply(Some(old), config, force).await,
            Some(old) => {
                let old = scope.resource.from_storage(old.clone());
                let applied = write.apply(Some(&old), config, force).await;
                is_unchanged =
                    applied.as_ref().is_ok_and(|applied| is_same_but_owners(&old, &applied.object));
                applied
            }
            None => write.apply(None, config, force).await,
        }?;
        let mut new = applied.object;
        self.convert(old, &mut new)?;
        self.config.check_strictly(scope, self.options)?;
        if old.is_none() && !new.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                new.uid()
            );
            let resource = scope.resource.resource.group_resource();
            return Err(Status::conflict(&resource, &scope.info.name, &why));
        }
        scope.empty_fields.set(applied.empty_fields);
        let mut new = match old.filter(|_| is_unchanged) {
            // There and back, a conversion may change an object: the metrics of an autoscaler have another order then.
            Some(old) => {
                let mut kept = old.clone();
                take_owners(&mut kept, &mut new);
                kept
            }
            None => scope.resource.to_storage(new),
        };
        set_namespace(scope, &mut new)?;
        check_name(&new, &scope.info.name)?;
        scope.empty_fields.note_labels(&new);
        scope.store()?.set_defaults_of_body(&mut new, &scope.empty_fields);
        Ok(new)
    }

    /// Converts what a built-in kind has only in annotations.
    ///
    /// # Errors
    /// 500 when a changed object has a value there that does not convert.
    fn convert(&self, old: Option<&Value>, new: &mut Value) -> Result<(), Status> {
        let (scope, config, kind) = (self.admission.scope, &self.config.object, self.admission.kind);
        if scope.resource.schema.get().is_structural() {
            return Ok(());
        }
        let Err(status) = BodyKind::of(scope.resource, kind).coerce(new) else { return Ok(()) };
        // A stored object that does not convert may stay.
        if old.is_some_and(|old| is_same_but_owners(&scope.resource.from_storage(old.clone()), new)) {
            return Ok(());
        }
        let what = format!("{}/{}; {kind}", config.namespace(), config.name());
        Err(Status::unknown(format!("failed to convert to unversioned ({what}): {}", status.message)))
    }
}

impl Transform for ApplyTransform<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let new = self.applied(old).await?;
            self.admission.of_update(old).admit(new, old).await
        })
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
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use pintle_machinery::json;

    #[tokio::test]
    async fn managers_own_the_fields_that_they_apply() {
        let server = TestServer::start().await;
        let check = async |query: &str, value: &str, code: u16| {
            let uri = format!("{CONFIG_MAPS}/a?{query}");
            let config = json!({
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "a"},
                "data": {"k": value},
            });
            let (found, object) = server.send_as("PATCH", &uri, "application/apply-patch+yaml", config).await;
            assert_eq!(found, code, "{query}: {object}");
        };
        check("fieldManager=one", "1", 201).await;
        check("fieldManager=one", "2", 200).await;
        check("fieldManager=two", "2", 200).await;
        check("fieldManager=two", "3", 409).await;
        check("fieldManager=two&force=true", "3", 200).await;
        check("", "3", 422).await;
    }
}
