//! Restores the fields that a write may not change.

use pintle_machinery::{Value, ValueExt};

/// Restores the value at a dotted path, or its absence, from the stored object.
pub fn keep(object: &mut Value, old: &Value, path: &str) {
    match old.at(path) {
        Some(value) => object.set(path, value.clone()),
        None => drop(object.remove_at(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn values_and_their_absence_are_restored() {
        let old = json!({"spec": {"a": 1, "b": null}});
        let check = |path: &str, expected: Value| {
            let mut object = json!({"spec": {"a": 2, "b": 3}, "status": {"c": 4}});
            keep(&mut object, &old, path);
            assert_eq!(object, expected, "{path}");
        };
        check("spec", json!({"spec": {"a": 1, "b": null}, "status": {"c": 4}}));
        check("spec.a", json!({"spec": {"a": 1, "b": 3}, "status": {"c": 4}}));
        check("spec.b", json!({"spec": {"a": 2}, "status": {"c": 4}}));
        check("status", json!({"spec": {"a": 2, "b": 3}}));
        check("other.field", json!({"spec": {"a": 2, "b": 3}, "status": {"c": 4}}));
    }
}
