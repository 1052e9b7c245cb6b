//! A strategy for kinds with only common rules: a status subresource, generations, a few defaults.

use crate::gated_fields::{GatedFields, drop_disabled};
use crate::rules::{count_generation_if, keep, keep_metadata, metadata_update};
use pintle_machinery::{
    ErrorList, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{
        name_is_dns_subdomain, semantically_equal, validate_object_meta, validate_path_segment_name,
    },
};
use pintle_registry::{BoxFuture, RequestContext, Strategy};

/// Whether a kind has generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// No generation.
    Uncounted,
    /// The generation starts at one and increments on every change outside metadata and status.
    Counted,
    /// As `Counted`. An empty list or map that the body gives in this field is a change, too: Go compares the new object
    /// with the stored one, which has none.
    CountedWithEmpty(&'static str),
}

/// A strategy composed of common rules.
#[derive(Clone, Copy)]
pub(crate) struct PlainStrategy {
    defaults: fn(&mut Value),
    /// The path of the part that has fields behind gates, and the fields there.
    gated: (&'static str, &'static [GatedFields]),
    generation: Generation,
    has_status: bool,
    creates_on_update: bool,
    needs_resource_version: bool,
    answers_deleted_object: bool,
    takes_any_name: bool,
    checks: Option<Checks>,
    review: Option<Review>,
    client_check: fn(&Value) -> ErrorList,
    creation_warnings: fn(&Value) -> Vec<String>,
    update_warnings: fn(&Value) -> Vec<String>,
}

/// The checks of a kind that need the authorizer or other objects, as [`Strategy::review`].
pub(crate) type Review = for<'a> fn(
    &'a RequestContext<'a>,
    &'a Value,
    Option<&'a Value>,
    &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>>;

/// The validation functions of a kind, for objects with their metadata.
#[derive(Clone, Copy)]
struct Checks {
    create: fn(&Value) -> ErrorList,
    update: fn(&Value, &Value) -> ErrorList,
}

impl PlainStrategy {
    /// A strategy that validates only metadata.
    pub(crate) const NEW: PlainStrategy = PlainStrategy {
        defaults: |_| {},
        gated: ("", &[]),
        generation: Generation::Uncounted,
        has_status: false,
        creates_on_update: false,
        needs_resource_version: false,
        answers_deleted_object: false,
        takes_any_name: false,
        checks: None,
        review: None,
        client_check: |_| Vec::new(),
        creation_warnings: |_| Vec::new(),
        update_warnings: |_| Vec::new(),
    };

    /// Sets the defaulting function.
    pub(crate) const fn defaults(self, defaults: fn(&mut Value)) -> PlainStrategy {
        PlainStrategy { defaults, ..self }
    }

    /// Sets the fields behind gates, by their paths in the part at `place`.
    pub(crate) const fn gated(self, place: &'static str, fields: &'static [GatedFields]) -> PlainStrategy {
        PlainStrategy { gated: (place, fields), ..self }
    }

    pub(crate) const fn generation(self, generation: Generation) -> PlainStrategy {
        PlainStrategy { generation, ..self }
    }

    /// Separates the status: only its subresource writes it, and it is empty on create.
    pub(crate) const fn with_status(self) -> PlainStrategy {
        PlainStrategy { has_status: true, ..self }
    }

    /// Allows create-on-update.
    pub(crate) const fn creates_on_update(self) -> PlainStrategy {
        PlainStrategy { creates_on_update: true, ..self }
    }

    /// Requires the resourceVersion on update.
    pub(crate) const fn needs_resource_version(self) -> PlainStrategy {
        PlainStrategy { needs_resource_version: true, ..self }
    }

    /// Returns the deleted object instead of a `Status`.
    pub(crate) const fn answers_deleted_object(self) -> PlainStrategy {
        PlainStrategy { answers_deleted_object: true, ..self }
    }

    /// Allows every name, and name prefix, that fits into a path.
    pub(crate) const fn takes_any_name(self) -> PlainStrategy {
        PlainStrategy { takes_any_name: true, ..self }
    }

    /// Sets the validation of a new object and of an update, both including metadata.
    pub(crate) const fn checked(
        self,
        create: fn(&Value) -> ErrorList,
        update: fn(&Value, &Value) -> ErrorList,
    ) -> PlainStrategy {
        PlainStrategy { checks: Some(Checks { create, update }), ..self }
    }

    /// Sets the checks that need the authorizer or other objects.
    pub(crate) const fn reviewed(self, review: Review) -> PlainStrategy {
        PlainStrategy { review: Some(review), ..self }
    }

    /// Sets the validation of an object that a client creates, after the one of every new object.
    pub(crate) const fn checked_of_clients(self, check: fn(&Value) -> ErrorList) -> PlainStrategy {
        PlainStrategy { client_check: check, ..self }
    }

    /// Sets the warnings for an object that is created.
    pub(crate) const fn warned_on_create(self, warnings: fn(&Value) -> Vec<String>) -> PlainStrategy {
        PlainStrategy { creation_warnings: warnings, ..self }
    }

    /// Sets the warnings for an object that is updated.
    pub(crate) const fn warned_on_update(self, warnings: fn(&Value) -> Vec<String>) -> PlainStrategy {
        PlainStrategy { update_warnings: warnings, ..self }
    }
}

impl PlainStrategy {
    /// Defaults an object that is in no namespace and comes from no request, and validates it as a new one.
    pub(crate) fn default_and_validate(&self, object: &mut Value) -> ErrorList {
        (self.defaults)(object);
        self.validate_new(object, false)
    }

    fn validate_new(&self, object: &Value, namespaced: bool) -> ErrorList {
        match self.checks {
            Some(checks) => (checks.create)(object),
            None => {
                let name = |name: &str, prefix| self.validate_name(name, prefix);
                validate_object_meta(object, namespaced, name, &FieldPath::new("metadata"))
            }
        }
    }

    fn drop_disabled_fields(&self, object: &mut Value, old: Option<&Value>) {
        let (place, fields) = self.gated;
        if let Some(part) = object.at_mut(place) {
            let has_fields = |part: &Value| part.as_object().is_some_and(|fields| !fields.is_empty());
            let had_fields = has_fields(part);
            drop_disabled(fields, part, old.and_then(|old| old.at(place)));
            // A stored part without fields is none.
            if had_fields && !has_fields(part) {
                object.remove_at(place);
            }
        }
    }
}

impl Strategy for PlainStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        if self.has_status { &["status"] } else { &[] }
    }

    fn set_defaults(&self, object: &mut Value) {
        (self.defaults)(object);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        if self.has_status {
            object.remove_at("status");
        }
        self.drop_disabled_fields(object, None);
        match self.generation {
            Generation::Counted | Generation::CountedWithEmpty(_) => object.set_generation(1),
            Generation::Uncounted => {}
        }
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = self.validate_new(object, !context.namespace.is_empty());
        errors.extend((self.client_check)(object));
        errors
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if self.has_status {
            keep(object, old, "status");
        }
        self.drop_disabled_fields(object, Some(old));
        let has_changed = match self.generation {
            Generation::Uncounted => false,
            Generation::Counted => !semantically_equal(&wanted(object), &wanted(old)),
            Generation::CountedWithEmpty(field) => {
                context.empty_fields.any_left_within(field, object)
                    || !semantically_equal(&wanted(object), &wanted(old))
            }
        };
        if has_changed {
            count_generation_if(object, old, true);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        match self.checks {
            Some(checks) => (checks.update)(object, old),
            None => metadata_update(object, old),
        }
    }

    fn review<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a Value,
        old: Option<&'a Value>,
        errors: &'a mut ErrorList,
    ) -> Option<BoxFuture<'a, ()>> {
        (self.review?)(context, object, old, errors)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        (self.creation_warnings)(object)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        (self.update_warnings)(object)
    }

    fn allow_create_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        !self.needs_resource_version
    }

    fn returns_deleted_object(&self) -> bool {
        self.answers_deleted_object
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        match self.takes_any_name {
            true => validate_path_segment_name(name, false),
            false => name_is_dns_subdomain(name, prefix),
        }
    }
}

/// The object without its metadata and status.
fn wanted(object: &Value) -> Value {
    let mut wanted = object.clone();
    for member in ["metadata", "status"] {
        wanted.remove_at(member);
    }
    wanted
}

/// The strategy of a plain kind's status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainStatusStrategy {
    /// Whether a status write keeps metadata; otherwise it writes metadata too.
    pub(crate) keeps_metadata: bool,
}

impl Strategy for PlainStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        if self.keeps_metadata { &["metadata", "spec"] } else { &["spec"] }
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep_but_status(object, old);
        if self.keeps_metadata {
            keep_metadata(object, old);
        }
    }
}

/// The strategy of a status that is validated and whose writes keep all metadata.
#[derive(Clone, Copy)]
pub(crate) struct CheckedStatusStrategy {
    /// Whether an update needs the resourceVersion.
    pub(crate) needs_resource_version: bool,
    /// Validates the new status, with the metadata.
    pub(crate) check: fn(&Value, &Value) -> ErrorList,
}

impl Strategy for CheckedStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep_but_status(object, old);
        keep_metadata(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        (self.check)(object, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        !self.needs_resource_version
    }
}

/// Restores everything except metadata and status.
pub(crate) fn keep_but_status(object: &mut Value, old: &Value) {
    let mut kept = old.clone();
    for member in ["metadata", "status"] {
        match object.remove_at(member) {
            Some(value) => kept.set(member, value),
            None => _ = kept.remove_at(member),
        }
    }
    *object = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::Gate;
    use pintle_machinery::codec::EmptyField;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    fn context<T>(test: impl FnOnce(&RequestContext<'_>) -> T) -> T {
        with_context(&MemoryRegistry::default(), "", false, test)
    }

    const COUNTED: PlainStrategy = PlainStrategy::NEW.generation(Generation::Counted).with_status();

    #[test]
    fn a_new_object_has_no_status_and_the_first_generation() {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"a": 1}, "status": {"b": 2}});
        context(|context| COUNTED.prepare_for_create(context, &mut object));
        assert_eq!(object, json!({"metadata": {"name": "a", "generation": 1}, "spec": {"a": 1}}));
    }

    #[test]
    fn empty_lists_of_a_body_count_for_some_kinds() {
        let check = |strategy: PlainStrategy, path: &str, generation: i64| {
            let old = json!({"metadata": {"generation": 4}, "spec": {"a": 1}});
            let mut object = old.clone();
            context(|context| {
                context.empty_fields.set(vec![EmptyField { path: path.to_owned(), value: json!([]) }]);
                strategy.prepare_for_update(context, &mut object, &old);
            });
            assert_eq!(object.generation(), generation, "{path}");
        };
        let strategy = PlainStrategy::NEW.generation(Generation::CountedWithEmpty("spec"));
        check(strategy, "spec.b[0].c", 5);
        check(strategy, "specs.b", 4);
        check(COUNTED, "spec.b", 4);
    }

    #[test]
    fn a_part_that_loses_all_its_fields_is_as_a_stored_one() {
        const FIELDS: &[GatedFields] = &[GatedFields { gates: &[Gate::HPAScaleToZero], fields: &["a"] }];
        let strategy = COUNTED.gated("spec", FIELDS);
        let old = json!({"metadata": {"name": "a", "generation": 1}});
        let mut new = json!({"metadata": {"name": "a", "generation": 1}, "spec": {"a": 1}});
        context(|context| strategy.prepare_for_update(context, &mut new, &old));
        assert_eq!(new, old);
    }

    #[test]
    fn generations_count_what_is_wanted() {
        let check = |new: Value, generation: i64| {
            let old = json!({"metadata": {"generation": 4}, "spec": {"a": 1}, "status": {"b": 2}});
            let mut object = new;
            context(|context| COUNTED.prepare_for_update(context, &mut object, &old));
            assert_eq!(object.generation(), generation);
            assert_eq!(object.i64_at("status.b"), Some(2));
        };
        check(json!({"metadata": {"generation": 4}, "spec": {"a": 1}, "status": {"b": 3}}), 4);
        check(json!({"metadata": {"generation": 4, "labels": {"x": "y"}}, "spec": {"a": 1}}), 4);
        check(json!({"metadata": {"generation": 4}, "spec": {"a": 2}}), 5);
        check(json!({"metadata": {"generation": 4}, "spec": {"a": 1}, "webhooks": [{}]}), 5);
    }

    #[test]
    fn the_status_is_written_alone() {
        let old =
            json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"a": 1}, "status": {"b": 2}});
        let new = json!({"metadata": {"name": "a"}, "spec": {"a": 2}, "status": {"b": 3}});
        let mut object = new.clone();
        object.set("metadata.deletionTimestamp", "2024-01-01T00:00:00Z");
        let strategy = PlainStatusStrategy { keeps_metadata: true };
        context(|context| strategy.prepare_for_update(context, &mut object, &old));
        let labelled = json!({"name": "a", "labels": {"x": "y"}});
        assert_eq!(object, json!({"metadata": labelled, "spec": {"a": 1}, "status": {"b": 3}}));
        let mut object = new;
        let strategy = PlainStatusStrategy { keeps_metadata: false };
        context(|context| strategy.prepare_for_update(context, &mut object, &old));
        assert_eq!(object, json!({"metadata": {"name": "a"}, "spec": {"a": 1}, "status": {"b": 3}}));
    }
}
