//! The strategies of definitions and of their status.

use super::default_rules::coerce_defaults;
use super::spec::same;
use super::{formats, validation};
use crate::controllers::{condition, finalizer::FINALIZER};
use pintle_machinery::{ErrorList, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::{EmptyFields, FirstPropagation, RequestContext, Strategy, keep};
use std::borrow::Cow;

/// The rules of definitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefinitionStrategy;

impl Strategy for DefinitionStrategy {
    fn begins_deletion_with_status(&self) -> bool {
        true
    }

    fn first_propagation(&self) -> FirstPropagation {
        FirstPropagation::Ignored
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        set_defaults(object);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
        object.set_generation(1);
        add_stored_version(object);
        coerce_defaults(object);
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate(&with_empty_fields(object, context.empty_fields))
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        formats::warnings(object, None)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        coerce_defaults(object);
        let is_changed = !same(object.at("spec"), old.at("spec"));
        object.set_generation(old.generation() + i64::from(is_changed));
        add_stored_version(object);
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(&with_empty_fields(object, context.empty_fields), old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        formats::warnings(object, Some(old))
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_for_deletion(&self, object: &mut Value) {
        let mut finalizers = object.items_at("metadata.finalizers").to_vec();
        if !finalizers.iter().any(|own| own == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        object.set("metadata.finalizers", finalizers);
        let says = condition::Says {
            condition_type: "Terminating",
            status: "True",
            reason: "InstanceDeletionPending",
            message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        };
        condition::set(object, says);
    }

    /// A definition is removed only after its objects, never by the delete request itself.
    fn may_be_removed(&self, object: &Value) -> bool {
        object.is_terminating()
    }
}

/// The rules of a definition's status; a status write keeps the spec.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        object.set_generation(old.generation());
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_status_update(object, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// The object with the empty lists and maps of its schemas: some are forbidden where absent ones are not, and messages
/// show them.
fn with_empty_fields<'a>(object: &'a Value, empty_fields: &EmptyFields) -> Cow<'a, Value> {
    let mut fields = empty_fields.all();
    fields.retain(|field| field.path.contains(".schema.openAPIV3Schema."));
    if fields.is_empty() {
        return Cow::Borrowed(object);
    }
    let of_schemas = EmptyFields::default();
    of_schemas.set(fields);
    let mut object = object.clone();
    of_schemas.put_into(&mut object);
    Cow::Owned(object)
}

fn set_defaults(object: &mut Value) {
    let kind = object.str_at("spec.names.kind").to_owned();
    if !kind.is_empty() {
        if object.str_at("spec.names.singular").is_empty() {
            object.set("spec.names.singular", pintle_go_forms::to_lower(&kind));
        }
        if object.str_at("spec.names.listKind").is_empty() {
            object.set("spec.names.listKind", format!("{kind}List"));
        }
    }
    if object.items_at("status.storedVersions").is_empty() {
        add_stored_version(object);
    }
    object.set_default("spec.conversion", json!({"strategy": "None"}));
    // Kubernetes' internal version has the fields of the webhook without a struct around them.
    let has_client = object.at("spec.conversion.webhook.clientConfig").is_some();
    if !has_client && object.items_at("spec.conversion.webhook.conversionReviewVersions").is_empty() {
        object.remove_at("spec.conversion.webhook");
    }
    if let Some(service) = object.at_mut("spec.conversion.webhook.clientConfig.service") {
        service.set_default("port", 443);
    }
}

/// Adds the storage version to the versions in which stored objects may be found.
fn add_stored_version(object: &mut Value) {
    let versions = object.items_at("spec.versions");
    let Some(storage) = versions.iter().find(|version| version.bool_at("storage")) else { return };
    let name = Value::from(storage.str_at("name"));
    let mut stored = object.items_at("status.storedVersions").to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        object.set("status.storedVersions", stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::codec::EmptyField;

    #[test]
    fn names_conversion_and_stored_versions_have_defaults() {
        let mut definition = json!({"spec": {
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1"}, {"name": "v2", "storage": true}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s"}}}},
        }});
        set_defaults(&mut definition);
        assert_eq!(definition.str_at("spec.names.singular"), "thing");
        assert_eq!(definition.str_at("spec.names.listKind"), "ThingList");
        assert_eq!(definition.i64_at("spec.conversion.webhook.clientConfig.service.port"), Some(443));
        assert_eq!(definition.at("status"), Some(&json!({"storedVersions": ["v2"]})));
        let once = definition.clone();
        set_defaults(&mut definition);
        assert_eq!(definition, once);
    }

    #[test]
    fn a_conversion_webhook_without_fields_is_dropped() {
        for (webhook, is_kept) in [
            (json!({}), false),
            (json!({"conversionReviewVersions": []}), false),
            (json!({"conversionReviewVersions": ["v1"]}), true),
            (json!({"clientConfig": {}}), true),
        ] {
            let mut definition = json!({"spec": {"conversion": {"strategy": "None", "webhook": webhook}}});
            set_defaults(&mut definition);
            assert_eq!(definition.at("spec.conversion.webhook").is_some(), is_kept, "{definition}");
        }
    }

    #[test]
    fn empty_lists_and_maps_of_the_body_are_in_the_schema() {
        let schema = |properties: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": properties}}}]}});
        let empty_fields = EmptyFields::default();
        let object = schema(json!({"a": {"type": "object"}}));
        assert_eq!(*with_empty_fields(&object, &empty_fields), object);
        let a = "spec.versions[0].schema.openAPIV3Schema.properties.a";
        let field = |path: String, value: Value| EmptyField { path, value };
        empty_fields.set(vec![
            field(format!("{a}.dependencies"), json!({})),
            field(format!("{a}.required"), json!([])),
            field("spec.names.shortNames".to_owned(), json!([])),
        ]);
        let expected = schema(json!({"a": {"type": "object", "dependencies": {}, "required": []}}));
        assert_eq!(*with_empty_fields(&object, &empty_fields), expected);
    }

    #[test]
    fn a_new_storage_version_is_added_to_those_before() {
        let mut definition = json!({
            "spec": {"versions": [{"name": "v1"}, {"name": "v2", "storage": true}]},
            "status": {"storedVersions": ["v1"]},
        });
        add_stored_version(&mut definition);
        add_stored_version(&mut definition);
        assert_eq!(definition.at("status.storedVersions"), Some(&json!(["v1", "v2"])));
    }
}
