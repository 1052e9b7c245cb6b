//! Drops the fields of disabled features.
//!
//! A field behind a gate is served whatever the gate says, and so is one that is stored. While the gate is closed, writes lose
//! the field without an error, unless the stored object uses the feature already
//! (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api_changes.md#alpha-field-in-existing-api-version>).

use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

/// The fields of one feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatedFields {
    /// The gates that have to be open.
    pub(crate) gates: &'static [Gate],
    /// The paths of the fields: `a.b`, `a[].b` in all items of a list, `a{}.b` in all values of a map.
    pub(crate) fields: &'static [&'static str],
}

impl GatedFields {
    /// Whether writes keep the fields.
    pub(crate) fn are_kept(&self, old: Option<&Value>) -> bool {
        self.gates.iter().all(|gate| enabled(*gate)) || old.is_some_and(|old| self.are_in(old))
    }

    /// Whether an object has one of the fields.
    pub(crate) fn are_in(&self, object: &Value) -> bool {
        self.fields.iter().any(|field| has(object, field))
    }
}

/// Drops the fields of disabled features from an object, or from a part of it and of the stored object.
pub(crate) fn drop_disabled(features: &[GatedFields], object: &mut Value, old: Option<&Value>) {
    for feature in features.iter().filter(|feature| !feature.are_kept(old)) {
        // An object without these fields stays shared with the stored one.
        for field in feature.fields {
            if has(object, field) {
                remove(object, field);
            }
        }
    }
}

/// The first step of a path.
enum Step<'p> {
    Field(&'p str),
    /// The path of a list, and that in its items.
    Items(&'p str, &'p str),
    /// The path of a map, and that in its values.
    Values(&'p str, &'p str),
}

fn first_step(path: &str) -> Step<'_> {
    match (path.split_once("[]."), path.split_once("{}.")) {
        (Some((list, rest)), Some((map, _))) if list.len() < map.len() => Step::Items(list, rest),
        (Some((list, rest)), None) => Step::Items(list, rest),
        (_, Some((map, rest))) => Step::Values(map, rest),
        (None, None) => Step::Field(path),
    }
}

fn has(object: &Value, path: &str) -> bool {
    match first_step(path) {
        Step::Field(path) => object.at(path).is_some_and(|value| !value.is_null()),
        Step::Items(list, rest) => object.items_at(list).iter().any(|item| has(item, rest)),
        Step::Values(map, rest) => object.map_at(map).values().any(|value| has(value, rest)),
    }
}

fn remove(object: &mut Value, path: &str) {
    match first_step(path) {
        Step::Field(path) => drop(object.remove_at(path)),
        Step::Items(list, rest) => {
            for item in object.items_at_mut(list) {
                remove(item, rest);
            }
        }
        Step::Values(map, rest) => {
            let values = object.at_mut(map).and_then(Value::as_object_mut);
            for value in values.into_iter().flat_map(|values| values.values_mut()) {
                remove(value, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    /// Features whose gates are closed by default.
    const FEATURES: &[GatedFields] = &[
        GatedFields {
            gates: &[Gate::HPAScaleToZero, Gate::WatchList],
            fields: &["a.b", "list[].map{}.c", "map{}.list[].d"],
        },
        GatedFields { gates: &[Gate::WatchList], fields: &["kept"] },
    ];

    #[test]
    fn fields_of_disabled_features_are_dropped() {
        let mut object = json!({
            "a": {"b": 1, "x": 1},
            "list": [{"map": {"m": {"c": 1, "x": 1}, "n": {}}}, {}],
            "map": {"m": {"list": [{"d": 1}]}},
            "kept": 1,
        });
        let given = object.clone();
        drop_disabled(FEATURES, &mut object, Some(&json!({"a": {}, "list": []})));
        let expected = json!({
            "a": {"x": 1},
            "list": [{"map": {"m": {"x": 1}, "n": {}}}, {}],
            "map": {"m": {"list": [{}]}},
            "kept": 1,
        });
        assert_eq!(object, expected);
        for old in [
            json!({"a": {"b": 0}}),
            json!({"list": [{}, {"map": {"z": {"c": false}}}]}),
            json!({"map": {"z": {"list": [{"d": []}]}}}),
        ] {
            let mut object = given.clone();
            drop_disabled(FEATURES, &mut object, Some(&old));
            assert_eq!(object, given, "{old}");
        }
    }
}
