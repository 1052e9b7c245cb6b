//! Defines [`EmptyFields`], what the body of a request says beyond the tree that it decodes to.

use parking_lot::Mutex;
use pintle_machinery::{FieldError, Map, Value, ValueExt, codec::EmptyField};
use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
};

/// The lists and maps that the body of a request gives as `[]` or `{}`, by their paths in the version of the body, and
/// whether it has labels.
///
/// Encodings omit most such fields, so the canonical tree has none of them, and no stored object. Go tells them from absent ones until the object
/// is stored: a few rules and the messages of others depend on it.
#[derive(Debug, Default)]
pub struct EmptyFields {
    fields: Mutex<Vec<EmptyField>>,
    lacks_labels: AtomicBool,
}

impl EmptyFields {
    /// Replaces the fields: a body is decoded, or decoded again for another attempt.
    pub fn set(&self, fields: Vec<EmptyField>) {
        *self.fields.lock() = fields;
    }

    /// Notes whether an object has labels before it gets its defaults, which may copy those of a template.
    pub fn note_labels(&self, object: &Value) {
        self.lacks_labels.store(object.map_at("metadata.labels").is_empty(), Ordering::Relaxed);
    }

    /// Whether the object had no labels of its own.
    pub fn lacks_labels(&self) -> bool {
        self.lacks_labels.load(Ordering::Relaxed)
    }

    /// All empty lists and maps of the body.
    pub fn all(&self) -> Vec<EmptyField> {
        self.fields.lock().clone()
    }

    /// Whether the body has an empty list or map at the path.
    pub fn contains(&self, path: &str) -> bool {
        self.fields.lock().iter().any(|field| field.path == path)
    }

    /// The results of `select` for the paths of the empty lists and maps of the body.
    pub fn select(&self, select: impl Fn(&str) -> Option<String>) -> HashSet<String> {
        self.fields.lock().iter().filter_map(|field| select(&field.path)).collect()
    }

    /// Whether the body has an empty list or map in the value at the path, of which the object has nothing either: it may
    /// have got a default there.
    pub fn any_left_within(&self, path: &str, object: &Value) -> bool {
        let is_within = |field: &EmptyField| {
            field.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let is_left = |field: &EmptyField| match find(object, &field.path) {
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(members)) => members.is_empty(),
            Some(_) | None => true,
        };
        self.fields.lock().iter().any(|field| is_within(field) && is_left(field))
    }

    /// The empty list or map at the path; null when the body has none.
    pub fn value(&self, path: &str) -> Value {
        self.fields
            .lock()
            .iter()
            .find(|field| field.path == path)
            .map(|field| field.value.clone())
            .unwrap_or_default()
    }

    /// Puts the empty lists and maps back into the object, where it has the values around them and nothing at their place.
    /// Of those values the innermost may be missing, as a struct with nothing else is. Whether there was one.
    pub fn put_into(&self, object: &mut Value) -> bool {
        let mut has_changed = false;
        for field in self.fields.lock().iter() {
            let (parent, name) = field.path.rsplit_once('.').unwrap_or(("", &field.path));
            let members = struct_at(object, parent);
            if let Some(members) = members.filter(|members| !members.contains_key(name)) {
                members.insert(name, field.value.clone());
                has_changed = true;
            }
        }
        has_changed
    }

    /// Lets errors of absent values show the empty ones that the body has there.
    pub fn show_in(&self, errors: &mut [FieldError]) {
        let fields = self.fields.lock();
        if fields.is_empty() {
            return;
        }
        for error in errors.iter_mut().filter(|error| error.bad_value == Some(Value::Null)) {
            let path = error.field.to_string();
            if let Some(field) = fields.iter().find(|field| field.path == path) {
                error.bad_value = Some(field.value.clone());
                error.shown_as = None;
            }
        }
    }
}

/// The value at a path of fields and indexes, such as `spec.containers[0]`.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(object, |value, step| {
        let mut parts = step.split('[');
        let field = value.get(parts.next()?)?;
        parts.try_fold(field, |list, index| list.get(index.strip_suffix(']')?.parse::<usize>().ok()?))
    })
}

/// The members of the struct at a path, which is created in a struct that has none.
fn struct_at<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Map> {
    let Some((outer, name)) = path.rsplit_once('.').filter(|(_, name)| !name.ends_with(']')) else {
        return value_at(object, path)?.as_object_mut();
    };
    let members = value_at(object, outer)?.as_object_mut()?;
    if !members.contains_key(name) {
        members.insert(name, Value::Object(Map::new()));
    }
    members.get_mut(name)?.as_object_mut()
}

/// As [`find`], mutable.
fn value_at<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(object, |value, step| {
        let mut parts = step.split('[');
        let field = value.get_mut(parts.next()?)?;
        parts.try_fold(field, |list, index| list.get_mut(index.strip_suffix(']')?.parse::<usize>().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{FieldPath, json};

    #[test]
    fn errors_of_absent_values_show_what_the_body_has() {
        let fields = EmptyFields::default();
        let shown = |value: Value| {
            let mut errors =
                vec![FieldError::invalid(&FieldPath::new("spec").child("ports"), value, "wrong")];
            fields.show_in(&mut errors);
            errors[0].to_string()
        };
        assert_eq!(shown(json!(null)), "spec.ports: Invalid value: null: wrong");
        fields.set(vec![EmptyField { path: "spec.ports".to_owned(), value: json!([]) }]);
        assert_eq!(shown(json!(null)), "spec.ports: Invalid value: []: wrong");
        assert_eq!(shown(json!([1])), "spec.ports: Invalid value: [1]: wrong");
        assert_eq!((fields.contains("spec.ports"), fields.value("spec.ports")), (true, json!([])));
        assert_eq!((fields.contains("spec"), fields.value("spec")), (false, json!(null)));
    }

    #[test]
    fn fields_with_defaults_are_not_empty_any_more() {
        let fields = EmptyFields::default();
        let path = "spec.items[0].types";
        fields.set(vec![EmptyField { path: path.to_owned(), value: json!([]) }]);
        let left = |item: Value| fields.any_left_within("spec", &json!({"spec": {"items": [item]}}));
        assert!(left(json!({})) && left(json!({"types": []})) && left(json!({"types": null})));
        assert!(!left(json!({"types": ["a"]})));
        assert!(!fields.any_left_within("status", &json!({})));
    }

    #[test]
    fn empty_fields_are_put_where_the_object_has_nothing() {
        let fields = EmptyFields::default();
        let field = |path: &str, value| EmptyField { path: path.to_owned(), value };
        let mut object = json!({"spec": {"containers": [{"name": "c"}, {"env": [1]}]}});
        assert!(!fields.put_into(&mut object));
        fields.set(vec![
            field("status", json!({})),
            field("spec.volumes", json!([])),
            field("spec.containers[0].env", json!([])),
            field("spec.containers[1].env", json!([])),
            field("spec.containers[2].env", json!([])),
            field("spec.template.spec.volumes", json!([])),
            field("spec.containers[0].resources.claims", json!([])),
            field("spec.containers[x].env", json!([])),
        ]);
        assert!(fields.put_into(&mut object));
        assert_eq!(
            object,
            json!({"status": {}, "spec": {"volumes": [], "containers": [{"name": "c", "env": [], "resources": {"claims": []}}, {"env": [1]}]}})
        );
        assert!(!fields.put_into(&mut object));
    }
}
