//! Serves patches: JSON patch, merge patch, strategic merge patch; dispatches server-side apply
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).

use super::{
    apply::apply,
    decode::other_kind,
    patched_text::Touched,
    request_scope::RequestScope,
    unrestorable,
    write::{check_name, dedup_owner_references, encoder, respond, set_namespace},
};
use crate::{
    base::{
        body::RequestBody,
        negotiation::{APPLY_PATCH, body_media_type, unsupported_media_type},
        response::Response,
    },
    registry::{Preconditions, Transform, Upsert},
};
use bytes::Bytes;
use pintle_admission::Operation;
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, GroupVersion, GroupVersionKind, Status, StatusReason, Value, ValueExt,
    codec::{StrictProblem, json},
    options::{FieldValidation, WriteOptions},
    patch::{PatchError, Scope, json_patch, merge_patch, strategic},
};
use pintle_registry::{BoxFuture, RequestContext};
use pintle_schema::{Schema, SchemaBuilder, Structural, Type};
use std::sync::LazyLock;

/// A patch and its format.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    format: Format,
    patch: Value,
    /// Problems of the patch itself that only strict validation rejects.
    problems: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Json,
    Merge,
    Strategic,
}

impl Patch {
    /// Parses a patch in the format of its content type.
    ///
    /// # Errors
    /// 415 for an unsupported format, 400 for a body that is not JSON.
    pub(super) fn parse(scope: &RequestScope<'_>, body: &Bytes) -> Result<Patch, Status> {
        let is_custom = scope.resource.schema.is_custom();
        let format = match body_media_type(scope.headers) {
            "application/json-patch+json" => Format::Json,
            "application/merge-patch+json" => Format::Merge,
            "application/strategic-merge-patch+json" if !is_custom => Format::Strategic,
            _ if is_custom => {
                return Err(unsupported_media_type(&[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    APPLY_PATCH,
                ]));
            }
            _ => {
                let mut status =
                    Status::failure(415, StatusReason::UnsupportedMediaType, "415: Unsupported Media Type");
                status.details = Some(Default::default());
                return Err(status);
            }
        };
        let decoded = json::decode_body(body, ANYTHING.root())
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        let patch = decoded.value;
        let twice = decoded.problems.iter().map(ToString::to_string);
        let problems = match format {
            Format::Json => {
                let unknown = unknown_members(&patch).into_iter();
                twice.chain(unknown).map(|problem| format!("json patch {problem}")).collect()
            }
            Format::Merge => twice.collect(),
            Format::Strategic => Vec::new(),
        };
        Ok(Patch { format, patch, problems })
    }

    /// Problems of the patch itself that only strict validation rejects.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The part of the object that the patch applies to.
    pub(super) fn scope(&self) -> Scope {
        match self.format {
            Format::Json => Scope::of_json_patch(&self.patch),
            Format::Merge => Scope::of_merge_patch(&self.patch),
            Format::Strategic => Scope::of_strategic_merge_patch(&self.patch),
        }
    }

    /// The patched object, not yet decoded by its schema.
    pub(super) fn apply(
        &self,
        object: Value,
        schema: pintle_schema::SchemaRef<'_>,
        validation: FieldValidation,
    ) -> Result<Value, Status> {
        let patched = match self.format {
            // These two apply to the object's JSON, with the empty members that the tree omits.
            Format::Json => json_patch::apply(json::to_value(&object, schema), &self.patch, validation),
            Format::Merge => {
                merge_patch::apply(json::to_value(&object, schema), self.patch.clone(), validation)
            }
            Format::Strategic => strategic::apply(object, self.patch.clone(), schema),
        };
        patched.map_err(Status::from)
    }
}

/// A schema that keeps all fields and reports duplicate keys.
static ANYTHING: LazyLock<Schema> = LazyLock::new(|| {
    let mut builder = SchemaBuilder::new();
    let root = builder.scalar(Type::Any);
    builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
    builder.finish(root)
});

/// Errors for unknown members in the operations of a JSON patch.
fn unknown_members(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let members = operations.flat_map(|(index, operation)| {
        let names = operation.as_object().into_iter().flat_map(|members| members.keys());
        names.map(move |name| (index, name))
    });
    let unknown = members.filter(|(_, name)| !matches!(name.as_str(), "op" | "path" | "from" | "value"));
    unknown.map(|(index, name)| format!("unknown field \"[{index}].{name}\"")).collect()
}

/// The 422 for a patch that cannot be applied to the object.
fn rejected() -> Status {
    PatchError::Unprocessable(String::new()).into()
}

/// Serves a PATCH of an object, or of a subresource of it.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn patch(
    scope: &RequestScope<'_>,
    body: RequestBody,
    subresource: &str,
) -> Result<Response, Status> {
    if body_media_type(scope.headers) == APPLY_PATCH {
        return apply(scope, body, subresource).await;
    }
    let encoder = encoder(scope)?;
    let options = WriteOptions::parse(scope.query.pairs(), "PatchOptions")?;
    let body = body.read().await?;
    scope.note_patch(&body);
    let patch = Patch::parse(scope, &body)?;
    let kind = scope.resource.resource.group_version_kind();
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    let mut transform = PatchTransform {
        scope,
        kind: &kind,
        context: &context,
        patch,
        validation: options.field_validation,
        field_manager: &options.field_manager,
    };
    let updated = store
        .update(
            &context,
            store.strategy(subresource)?,
            &Preconditions::default(),
            Upsert::Never,
            &mut transform,
            &scope.warnings,
        )
        .await?;
    respond(&encoder, 200, updated.written)
}

struct PatchTransform<'a> {
    scope: &'a RequestScope<'a>,
    kind: &'a GroupVersionKind,
    context: &'a RequestContext<'a>,
    patch: Patch,
    validation: FieldValidation,
    field_manager: &'a str,
}

impl PatchTransform<'_> {
    /// The 422 for an object that does not decode after the patch, with the whole patched object.
    fn invalid(&self, old: &Value, status: &Status) -> Status {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        let message = causes.first().map(|cause| cause.message.as_str()).unwrap_or_default();
        let why = message.strip_prefix("Invalid value: null: ").unwrap_or(message);
        let schema = self.scope.resource.schema.get();
        let old = self.scope.resource.from_storage(old.clone());
        let Ok(patched) = self.patch.apply(old, schema, self.validation) else { return rejected() };
        let mut why = why.to_owned();
        let text = match self.patch.format {
            _ if schema.is_structural() => String::from_utf8(json::encode_any(&patched)).unwrap_or_default(),
            Format::Json => Touched::by_json_patch(&self.patch.patch).text(&patched, schema),
            Format::Merge => Touched::by_merge_patch(&self.patch.patch).text(&patched, schema),
            Format::Strategic => {
                why = unrestorable::problem(&patched, schema).unwrap_or(why);
                unrestorable::go_text(&self.patch.patch)
            }
        };
        let error = FieldError::invalid(&FieldPath::new("patch"), text, why);
        Status::invalid(&GroupKind::default(), "", &vec![error])
    }

    /// The patched object in the storage version.
    fn patched(&self, old: &Value) -> Result<Value, Status> {
        let resource = self.scope.resource;
        let schema = resource.schema.get();
        let mut rest = resource.from_storage(old.clone());
        let patch_scope = self.patch.scope();
        let part = patch_scope.take(&mut rest, schema);
        let mut patched = self.patch.apply(part, schema, self.validation)?;
        // A tree holds no empty lists; a list with one empty entry requests the same reset.
        if !schema.is_structural()
            && patched.at("metadata.managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty)
        {
            patched.set("metadata.managedFields", serde_json::json!([{}]));
        }
        let problems = self.patch.problems();
        let read = read_patched(self.scope, patched, problems, self.kind, schema, self.validation);
        let patched = read.map_err(|status| match status.code {
            422 => self.invalid(old, &status),
            _ => status,
        })?;
        let patched = patch_scope.put_back(rest, patched);
        check_name(&patched, &self.scope.info.name)?;
        let mut patched = resource.to_storage(patched);
        set_namespace(self.scope, &mut patched)?;
        dedup_owner_references(self.scope, &mut patched);
        self.scope.store()?.set_defaults(&mut patched);
        Ok(patched)
    }
}

/// Decodes a patched tree, or part of one, by its schema, like a request body.
pub(super) fn read_patched(
    scope: &RequestScope<'_>,
    patched: Value,
    problems: &[String],
    kind: &GroupVersionKind,
    schema: pintle_schema::SchemaRef<'_>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    let group_version = kind.group_version().to_string();
    // Type metadata that the patch removed is taken from the path.
    let other = |own: &str, wanted: &str| !own.is_empty() && own != wanted;
    // Validation checks the kind and version that a custom resource claims.
    let is_custom = schema.is_structural();
    let said = |name: &str, wanted: &str| match patched.str_at(name) {
        own if is_custom && !own.is_empty() => own.to_owned(),
        _ => wanted.to_owned(),
    };
    let (own_kind, own_version) = (said("kind", &kind.kind), said("apiVersion", &group_version));
    let is_other =
        other(patched.str_at("kind"), &kind.kind) || other(patched.str_at("apiVersion"), &group_version);
    let undecodable = |error: &str| {
        let mut status = Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(error)]);
        status.message = format!("{} \"\" is invalid: patch: Invalid value: {error}", kind.group_kind());
        status
    };
    if !is_custom && is_other {
        let own = |name: &str, wanted: &str| match patched.str_at(name) {
            "" => wanted.to_owned(),
            own => own.to_owned(),
        };
        let version = own("apiVersion", &group_version);
        let found = GroupVersion::parse(&version)
            .ok_or_else(|| undecodable(&format!("unexpected GroupVersion string: {version}")))?;
        return Err(undecodable(&other_kind(&found.with_kind(own("kind", &kind.kind)), kind)));
    }
    let text = patched.to_string();
    let decoded = json::decode(text.as_bytes(), schema).map_err(|error| {
        // The type metadata is decoded before the rest.
        match json::type_meta(text.as_bytes()) {
            Err(error) if !is_custom => {
                undecodable(&format!("couldn't get version/kind; json parse error: {error}"))
            }
            _ => undecodable(&error.to_string()),
        }
    })?;
    let mut value = decoded.value;
    let mut problems = problems.to_vec();
    problems.extend(decoded.problems.iter().map(ToString::to_string));
    if is_custom {
        let unknown = scope.resource.resource.strategy.coerce(&mut value, true);
        let unknown = unknown.map_err(|status| undecodable(&status.message))?;
        problems.extend(unknown.into_iter().map(|path| StrictProblem::UnknownField(path).to_string()));
    }
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => scope.warnings.extend(problems),
        FieldValidation::Strict if problems.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", problems.join(", "));
            return Err(Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(&why)]));
        }
    }
    value.set("kind", own_kind);
    value.set("apiVersion", own_version);
    Ok(value)
}

fn invalid_patch(why: &str) -> FieldError {
    FieldError::invalid(&FieldPath::new("patch"), Value::Null, why)
}

impl Transform for PatchTransform<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let old = old.ok_or_else(|| Status::internal_error("a patch without its object"))?;
            let mut patched = self.patched(old)?;
            self.scope.managed_write(self.field_manager).update(Some(old), &mut patched).await;
            self.scope.admit(Operation::Update, self.kind, self.context, patched, Some(old)).await
        })
    }

    fn validate<'a>(
        &'a mut self,
        new: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.scope.validate(Operation::Update, self.kind, self.context, new, old))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use serde_json::json;

    #[tokio::test]
    async fn a_patch_is_applied_in_the_format_of_its_content_type() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |format: &str, patch: serde_json::Value, code: u16, data: serde_json::Value| {
            let uri = format!("{CONFIG_MAPS}/a");
            let (found, object) = server.send_as("PATCH", &uri, format, patch).await;
            assert_eq!((found, &object["data"]), (code, &data), "{object}");
        };
        let add = json!([{"op": "add", "path": "/data/b", "value": "2"}]);
        check("application/json-patch+json", add, 200, json!({"a": "1", "b": "2"})).await;
        let merge = json!({"data": {"a": null}});
        check("application/merge-patch+json", merge, 200, json!({"b": "2"})).await;
        let strategic = json!({"data": {"c": "3"}});
        check("application/strategic-merge-patch+json", strategic, 200, json!({"b": "2", "c": "3"})).await;
        check("application/json", json!({}), 415, json!(null)).await;
        let missing = json!([{"op": "remove", "path": "/data/z"}]);
        check("application/json-patch+json", missing, 422, json!(null)).await;
    }
}
