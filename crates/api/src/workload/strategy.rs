//! The strategy of the kinds whose controllers keep pods running. A kind declares its differences as a [`Workload`].

use crate::core::pod_template;
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::rules;
use pintle_machinery::{
    ErrorList, FieldPath, Status, Value, ValueExt, json, meta::ObjectMeta, validation::is_dns1123_label,
};
use pintle_registry::{DeleteOptions, GarbageCollectionPolicy, RequestContext, Strategy};

/// The rules of one kind of workload. [`WorkloadStrategy`] adds those that all kinds share: the generation, the
/// separation of spec and status, fields of disabled features, and the calls of these methods in their order.
pub(crate) trait Workload: Send + Sync {
    /// The path of the pod template.
    const TEMPLATE: &'static str = "spec.template";
    /// The fields behind gates, beside those of the pod template.
    const GATED: &'static [GatedFields] = &[];
    /// The fields that a write to `status` does not change.
    const RESET_BY_STATUS: &'static [&'static str] = &["spec"];
    /// Whether names of pods begin with the name of the workload, so that it should be a DNS label.
    const NAMES_PODS: bool = true;
    /// Whether dependents are orphaned when the client names no propagation policy.
    const ORPHANS_DEPENDENTS: bool = false;

    /// Converts the annotations of a request body that are fields in other versions of the kind.
    ///
    /// # Errors
    /// The reason why an annotation does not convert.
    fn convert_annotations(&self, _object: &mut Value) -> Result<(), String> {
        Ok(())
    }

    /// As [`Strategy::set_defaults`].
    fn set_defaults(&self, object: &mut Value);

    /// The status of a new object.
    fn new_status(&self) -> Value {
        json!({})
    }

    /// Prepares a new object, before the status and the generation are set.
    fn prepare_for_create(&self, _context: &RequestContext<'_>, _object: &mut Value) {}

    /// Prepares an update, before the generation is counted.
    fn prepare_for_update(&self, _object: &mut Value, _old: &Value) {}

    /// Prepares an update of the status, after the fields that it does not change are restored.
    fn prepare_for_status_update(&self, _object: &mut Value, _old: &Value) {}

    /// Validates the metadata of a new object.
    fn validate_metadata(&self, object: &Value) -> ErrorList {
        rules::metadata(object, true)
    }

    /// Whether an update increments the generation.
    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        rules::differs(object, old, "spec")
    }

    /// Validates everything but metadata; `old` is the stored object on update.
    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList;

    /// As [`Strategy::validate_update`].
    fn validate_update(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(self.validate_spec(object, Some(old)));
        errors
    }

    /// Validates the status.
    fn validate_status(&self, _object: &Value, _old: &Value) -> ErrorList {
        ErrorList::new()
    }

    /// Validates an update of the status, with metadata.
    fn validate_status_update(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(self.validate_status(object, old));
        errors
    }

    /// Whether an update warns about the template again.
    fn warns_of_template(&self, object: &Value, old: &Value) -> bool {
        rules::differs(object, old, "metadata.generation")
    }

    /// Warnings about the template; `old` is the stored object on update.
    fn template_warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let template = rules::value_at(object, Self::TEMPLATE);
        let old = old.and_then(|old| old.at(Self::TEMPLATE));
        pod_template::warnings(template, old, &FieldPath::new(Self::TEMPLATE))
    }

    /// Further warnings; `old` is the stored object on update.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// As [`Strategy::warnings_on_delete`].
    fn warnings_on_delete(&self, _options: &DeleteOptions) -> Vec<String> {
        Vec::new()
    }

    /// As [`Strategy::canonicalize`].
    fn canonicalize(&self, _object: &mut Value) {}
}

/// The strategy of a kind of workload.
pub(crate) struct WorkloadStrategy<W>(pub(crate) W);

impl<W: Workload> Strategy for WorkloadStrategy<W> {
    fn coerce(&self, object: &mut Value, is_request: bool) -> Result<Vec<String>, Status> {
        if is_request {
            self.0.convert_annotations(object).map_err(Status::bad_request)?;
        }
        Ok(Vec::new())
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        self.0.set_defaults(object);
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        self.0.prepare_for_create(context, object);
        object.set("status", self.0.new_status());
        object.set("metadata.generation", 1);
        drop_disabled_template_fields::<W>(object, None);
        drop_disabled(W::GATED, object, None);
        pod_template::keep_empty_claims(object, W::TEMPLATE, context.empty_fields);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = self.0.validate_metadata(object);
        errors.extend(self.0.validate_spec(object, None));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        if W::NAMES_PODS {
            warnings.extend(name_warnings(object));
        }
        warnings.extend(self.0.template_warnings(object, None));
        warnings.extend(self.0.warnings(object, None));
        warnings
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled_template_fields::<W>(object, Some(old));
        drop_disabled(W::GATED, object, Some(old));
        pod_template::keep_empty_claims(object, W::TEMPLATE, context.empty_fields);
        self.0.prepare_for_update(object, old);
        rules::count_generation_if(object, old, self.0.changes_generation(object, old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        self.0.validate_update(object, old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.0.warns_of_template(object, old) {
            warnings = self.0.template_warnings(object, Some(old));
        }
        warnings.extend(self.0.warnings(object, Some(old)));
        warnings
    }

    fn canonicalize(&self, object: &mut Value) {
        self.0.canonicalize(object);
    }

    fn garbage_collection_policy(&self) -> GarbageCollectionPolicy {
        match W::ORPHANS_DEPENDENTS {
            true => GarbageCollectionPolicy::OrphanDependents,
            false => GarbageCollectionPolicy::DeleteDependents,
        }
    }

    fn warnings_on_delete(&self, options: &DeleteOptions) -> Vec<String> {
        self.0.warnings_on_delete(options)
    }
}

/// The strategy of a workload's `status` subresource.
pub(crate) struct WorkloadStatusStrategy<W>(pub(crate) W);

impl<W: Workload> Strategy for WorkloadStatusStrategy<W> {
    fn reset_fields(&self) -> &'static [&'static str] {
        W::RESET_BY_STATUS
    }

    fn set_defaults(&self, object: &mut Value) {
        self.0.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        for field in W::RESET_BY_STATUS {
            rules::keep(object, old, field);
        }
        drop_disabled(W::GATED, object, Some(old));
        self.0.prepare_for_status_update(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        self.0.validate_status_update(object, old)
    }

    fn canonicalize(&self, object: &mut Value) {
        self.0.canonicalize(object);
    }
}

/// Warnings about the name: names of pods begin with it, and become host names.
fn name_warnings(object: &Value) -> Vec<String> {
    let messages = is_dns1123_label(object.name());
    if messages.is_empty() {
        return Vec::new();
    }
    vec![format!("metadata.name: {POD_NAME_RECOMMENDATION}: [{}]", messages.join(" "))]
}

/// The recommendation for names of workloads.
const POD_NAME_RECOMMENDATION: &str = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended";

/// Removes fields of disabled features from the template.
fn drop_disabled_template_fields<W: Workload>(object: &mut Value, old: Option<&Value>) {
    if let Some(template) = object.at_mut(W::TEMPLATE) {
        pod_template::drop_disabled_fields(template, old.and_then(|old| old.at(W::TEMPLATE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::codec::EmptyField;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    struct Plain;

    impl Workload for Plain {
        const RESET_BY_STATUS: &'static [&'static str] = &["spec", "metadata.labels"];

        fn set_defaults(&self, _object: &mut Value) {}

        fn validate_spec(&self, _object: &Value, _old: Option<&Value>) -> ErrorList {
            ErrorList::new()
        }
    }

    fn context<T>(test: impl FnOnce(&RequestContext<'_>) -> T) -> T {
        with_context(&MemoryRegistry::default(), "n", false, test)
    }

    #[test]
    fn a_new_object_has_an_empty_status_and_the_first_generation() {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"a": 1}, "status": {"replicas": 2}});
        context(|context| WorkloadStrategy(Plain).prepare_for_create(context, &mut object));
        assert_eq!(
            object,
            json!({"metadata": {"name": "a", "generation": 1}, "spec": {"a": 1}, "status": {}})
        );
    }

    #[test]
    fn an_update_keeps_the_status_and_counts_changes_of_the_spec() {
        let old = json!({"metadata": {"generation": 4}, "spec": {"a": 1}, "status": {"replicas": 2}});
        let check = |spec: Value, generation: i64| {
            let mut object = json!({"metadata": {"generation": 9}, "spec": spec, "status": {"replicas": 3}});
            context(|context| WorkloadStrategy(Plain).prepare_for_update(context, &mut object, &old));
            let expected =
                json!({"metadata": {"generation": generation}, "spec": spec, "status": {"replicas": 2}});
            assert_eq!(object, expected);
        };
        check(json!({"a": 1}), 4);
        check(json!({"a": 2}), 5);
    }

    #[test]
    fn an_update_of_the_status_keeps_the_declared_fields() {
        let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"a": 1}, "status": {}});
        let mut object =
            json!({"metadata": {"annotations": {"c": "d"}}, "spec": {"a": 2}, "status": {"replicas": 3}});
        context(|context| WorkloadStatusStrategy(Plain).prepare_for_update(context, &mut object, &old));
        let metadata = json!({"annotations": {"c": "d"}, "labels": {"a": "b"}});
        assert_eq!(object, json!({"metadata": metadata, "spec": {"a": 1}, "status": {"replicas": 3}}));
    }

    #[test]
    fn empty_claims_of_all_containers_together_are_refused() {
        let claims = |claims: Value| json!({"metadata": {}, "spec": {"template": {"spec": {"resources": {"claims": claims}}}}});
        let mut stored = claims(Value::Null);
        stored.remove_at("spec.template.spec.resources.claims");
        let (mut new, mut changed) = (stored.clone(), stored.clone());
        context(|context| {
            let path = "spec.template.spec.resources.claims".to_owned();
            context.empty_fields.set(vec![EmptyField { path, value: json!([]) }]);
            WorkloadStrategy(Plain).prepare_for_create(context, &mut new);
            WorkloadStrategy(Plain).prepare_for_update(context, &mut changed, &stored);
        });
        for object in [new, changed] {
            assert_eq!(object.at("spec"), claims(json!([])).at("spec"));
            let options = crate::core::pod_template::PodValidationOptions::for_template(None);
            let errors =
                pod_template::validate(object.at("spec.template").unwrap(), &FieldPath::new("t"), &options);
            let message =
                "t.spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level";
            assert!(errors.iter().any(|error| error.to_string() == message), "{errors:?}");
        }
    }

    #[test]
    fn names_that_are_no_host_names_are_warned_of() {
        let object = json!({"metadata": {"name": "a.b"}});
        let warnings = context(|context| WorkloadStrategy(Plain).warnings_on_create(context, &object));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}
