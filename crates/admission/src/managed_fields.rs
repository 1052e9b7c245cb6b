//! Keeps the managed fields of objects valid, whatever mutating admission does with them
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>).

use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt, managed_fields::FieldSet};

const PATH: &str = "metadata.managedFields";

/// The managed fields before the first change of mutating admission; `None` while nothing has changed them. They are
/// compared after the whole chain: a plugin sees what the one before it has left.
#[derive(Debug, Default)]
pub struct ManagedFieldsBefore(Option<Option<Value>>);

impl ManagedFieldsBefore {
    /// Remembers those of `before`, if `after` is the first object with others.
    pub(crate) fn changes(&mut self, before: &Value, after: &Value) {
        if self.0.is_none() && before.at(PATH) != after.at(PATH) {
            self.0 = Some(before.at(PATH).cloned());
        }
    }

    /// Restores managed fields that have become invalid, and returns a warning about them.
    pub(crate) fn restore(&mut self, object: &mut Value) -> Option<String> {
        let before = self.0.take()?;
        let why = fault(object)?;
        match before {
            Some(fields) => object.set(PATH, fields),
            None => _ = object.remove_at(PATH),
        }
        Some(format!(
            ".{PATH} was in an invalid state after admission; this could be caused by an outdated mutating admission \
             controller; please fix your requests: {why}"
        ))
    }

    /// Whether mutating admission has changed the managed fields.
    pub(crate) fn are_changed(&self) -> bool {
        self.0.is_some()
    }
}

/// The reason why the managed fields of an object are invalid.
fn fault(object: &Value) -> Option<String> {
    object.items_at(PATH).iter().enumerate().find_map(|(index, entry)| {
        if !matches!(entry.str_at("operation"), "Apply" | "Update") {
            return Some("operation must be `Apply` or `Update`".to_owned());
        }
        if entry.str_at("apiVersion").is_empty() {
            return Some("apiVersion must not be empty".to_owned());
        }
        match entry.str_at("fieldsType") {
            "FieldsV1" => {
                let why = FieldSet::from_fields_v1(entry.at("fieldsV1").filter(|fields| !fields.is_null())?)
                    .err()?;
                Some(format!(
                    "error decoding versioned set of managed fields entry {index}: error decoding set: {why}"
                ))
            }
            "" => Some(format!("missing fieldsType in managed fields entry {index}")),
            other => Some(format!("invalid fieldsType {} in managed fields entry {index}", quote(other))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn object(entry: &Value) -> Value {
        json!({"metadata": {"name": "n", "managedFields": [entry]}})
    }

    #[test]
    fn broken_managed_fields_are_those_from_before() {
        let valid =
            json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"});
        let check = |field: &str, value: &str, expected: &str| {
            let mut entry = valid.clone();
            entry.set(field, value);
            let mut changed = object(&entry);
            let mut before = ManagedFieldsBefore::default();
            before.changes(&object(&valid), &changed);
            let warning = before.restore(&mut changed).unwrap();
            assert_eq!(changed, object(&valid), "{field}");
            assert!(warning.ends_with(&format!("please fix your requests: {expected}")), "{warning}");
        };
        check("operation", "Other", "operation must be `Apply` or `Update`");
        check("apiVersion", "", "apiVersion must not be empty");
        check("fieldsType", "", "missing fieldsType in managed fields entry 0");
        check("fieldsType", "V2", "invalid fieldsType \"V2\" in managed fields entry 0");
        let mut entry = valid.clone();
        entry.set("fieldsV1", json!({"bad": 1}));
        let mut changed = object(&entry);
        let mut before = ManagedFieldsBefore::default();
        before.changes(&object(&valid), &changed);
        let warning = before.restore(&mut changed).unwrap();
        assert_eq!(changed, object(&valid));
        assert!(warning.contains("please fix your requests: error decoding versioned set"), "{warning}");
    }

    #[test]
    fn the_managed_fields_after_all_changes_count() {
        let (valid, broken, none) = (
            object(&json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"})),
            object(&json!({})),
            json!({"metadata": {"name": "n"}}),
        );
        // Each object after the other, and the last one with its managed fields restored.
        let check = |objects: [&Value; 3], expected: &Value, warns: bool| {
            let mut before = ManagedFieldsBefore::default();
            let [first, second, last] = objects;
            before.changes(first, second);
            before.changes(second, last);
            let mut object = last.clone();
            assert_eq!((before.restore(&mut object).is_some(), &object), (warns, expected), "{objects:?}");
        };
        check([&valid, &broken, &broken], &valid, true);
        check([&none, &valid, &broken], &none, true);
        check([&valid, &broken, &none], &none, false);
        // Entries that the client broke are not admission's fault.
        check([&broken, &broken, &broken], &broken, false);
    }
}
