//! Writes changed scales to their objects.

use super::{
    super::{
        admission::Admission,
        apply::Configuration,
        body_kind::BodyKind,
        patch::{Patch, read_patched},
        request_scope::RequestScope,
        write::{check_name, set_namespace},
    },
    view::{scale_kind, scale_of, scale_schema},
};
use crate::registry::{ManagedWrite, Transform, Upsert, Written};
use pintle_admission::{Operation, RequestOptions};
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Status, Value, ValueExt,
    managed_fields::{FieldManager, OneVersion, Replicas},
    meta::ObjectMeta,
    options::{FieldValidation, Preconditions, WriteOptions},
    validation::{name_is_dns_subdomain, validate_object_meta},
};
use pintle_registry::{BoxFuture, ScalePaths, ScaleValues};

/// The `spec.replicas` of an object without replicas.
const MISSING: i64 = i32::MIN as i64;

/// A change of a scale.
pub(super) enum Change {
    /// The scale of a PUT.
    Put(Value),
    /// A patch of the scale.
    Patch(Result<Patch, Status>),
    /// An applied configuration of the scale.
    Apply(Configuration),
}

/// Writes the replicas of a changed scale to its object, at `paths`.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn write(
    scope: &RequestScope<'_>,
    paths: &ScalePaths,
    options: &WriteOptions,
    change: Change,
) -> Result<Written, Status> {
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    let kind = scale_kind();
    let uid = match &change {
        Change::Put(scale) => scale.str_at("metadata.uid"),
        Change::Patch(_) | Change::Apply(_) => "",
    };
    let preconditions = Preconditions::uid(uid).without_empty();
    let mut transform = ScaleTransform {
        admission: Admission {
            scope,
            operation: Operation::Update,
            name: &scope.info.name,
            kind: &kind,
            context: &context,
            options: RequestOptions::Write(options),
        },
        change,
        validation: options.field_validation.unwrap_or_default(),
        paths,
        options,
    };
    let updated = store
        .update(&context, store.strategy("")?, &preconditions, Upsert::Never, &mut transform, &scope.warnings)
        .await?;
    Ok(updated.written)
}

struct ScaleTransform<'a> {
    admission: Admission<'a>,
    change: Change,
    validation: FieldValidation,
    paths: &'a ScalePaths,
    options: &'a WriteOptions,
}

impl Transform for ScaleTransform<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let old = old.ok_or_else(|| Status::internal_error("a scale without its object"))?;
            let (mut before, is_found) = scale_of(old, self.paths).map_err(Status::unknown)?;
            if !is_found {
                // A value that no client sends.
                before.set("spec.replicas", MISSING);
            }
            let resource = self.admission.scope.resource;
            let group_version = resource.resource.group_version_kind().group_version().to_string();
            let write = self.admission.scope.managed_write(&self.options.field_manager);
            let replicas = Replicas {
                path: &self.paths.spec_replicas,
                api_version: &group_version,
                path_in: &|version| write.replicas_path(version),
            };
            replicas.entries_to_scale(old, &mut before);
            let scale = match &self.change {
                Change::Put(scale) => {
                    let mut scale = scale.clone();
                    self.manager(&write, |manager| manager.update(Some(&before), &mut scale))?;
                    scale
                }
                Change::Patch(patch) => {
                    let patch = patch.as_ref().map_err(Status::clone)?;
                    let wanted = BodyKind::built_in(self.admission.kind, scale_schema()?);
                    let written = || patch.written(&before, wanted);
                    let patched = patch.apply(before.clone(), wanted.schema, self.validation)?;
                    let read = read_patched(
                        self.admission.scope,
                        patch,
                        patched,
                        &written,
                        true,
                        wanted,
                        self.validation,
                    );
                    let mut patched = read.map_err(|status| match status.code {
                        422 => patch.undecodable(before.clone(), wanted, self.validation, &status),
                        _ => status,
                    })?;
                    set_namespace(self.admission.scope, &mut patched)?;
                    check_name(&patched, &self.admission.scope.info.name)?;
                    self.manager(&write, |manager| manager.update(Some(&before), &mut patched))?;
                    patched
                }
                Change::Apply(config) => {
                    let force = self.options.force;
                    let applied =
                        self.manager(&write, |manager| manager.apply(Some(&before), &config.object, force))??;
                    let mut applied = applied.object;
                    config.check_strictly(self.admission.scope, self.options)?;
                    set_namespace(self.admission.scope, &mut applied)?;
                    check_name(&applied, &self.admission.scope.info.name)?;
                    applied
                }
            };
            let scale = self.admission.admit(scale, Some(&before)).await?;
            let wanted = scale.i64_at("spec.replicas").unwrap_or_default();
            if wanted == MISSING && self.paths.values == ScaleValues::Any {
                let path = quote(&format!(".{}", self.paths.spec_replicas));
                return Err(Status::bad_request(format!("the spec replicas field {path} cannot be empty")));
            }
            let errors = match self.paths.values {
                ScaleValues::Typed => validate_scale(&scale),
                ScaleValues::Any => ErrorList::new(),
            };
            if !errors.is_empty() {
                let kind = self.admission.kind.group_kind();
                return Err(Status::invalid(&kind, scale.str_at("metadata.name"), &errors));
            }
            if self.paths.values == ScaleValues::Typed
                && let Some(unmet) = Preconditions::uid(scale.uid()).without_empty().unmet_by(old)
            {
                let mut of_scale = resource.resource.group_resource();
                of_scale.resource.push_str("/scale");
                return Err(Status::conflict(&of_scale, old.name(), &unmet.of_change()));
            }
            let mut new = old.clone();
            new.set(&self.paths.spec_replicas, wanted);
            replicas.entries_to_object(&scale, &mut new);
            match scale.str_at("metadata.resourceVersion") {
                "" => {}
                version => new.set("metadata.resourceVersion", version),
            }
            Ok(new)
        })
    }

    fn validate<'a>(
        &'a mut self,
        new: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let scale = |object| scale_of(object, self.paths).map_err(Status::unknown);
            let (scale, before) = (scale(new)?.0, old.map(scale).transpose()?);
            self.admission.validate(&scale, before.as_ref().map(|(before, _)| before)).await
        })
    }
}

/// Validates a changed scale of a built-in kind.
fn validate_scale(scale: &Value) -> ErrorList {
    let mut errors = validate_object_meta(scale, true, name_is_dns_subdomain, &FieldPath::new("metadata"));
    let replicas = scale.i64_at("spec.replicas").unwrap_or_default();
    if replicas < 0 {
        let path = FieldPath::new("spec").child("replicas");
        errors.push(FieldError::invalid(&path, replicas, "must be greater than or equal to 0"));
    }
    errors
}

impl ScaleTransform<'_> {
    /// Runs the field manager on a scale.
    fn manager<R>(
        &self,
        write: &ManagedWrite<'_>,
        run: impl FnOnce(&FieldManager<'_>) -> R,
    ) -> Result<R, Status> {
        let version = self.admission.kind.group_version().to_string();
        Ok(run(&FieldManager {
            manager: &write.manager,
            kind: &self.admission.kind.kind,
            api_version: &version,
            subresource: "scale",
            now: write.now,
            schema: scale_schema()?,
            reset_fields: &[],
            empty_fields: &[],
            versions: &OneVersion,
        }))
    }
}
