//! Declares the selectable fields of custom resources
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources/#field-selectors>).

use pintle_machinery::{Value, ValueExt, text::go_format};
use pintle_registry::SelectableField;
use std::collections::HashSet;

/// The selectable fields of a version, given all versions of a definition. Their paths are simple ones, `.spec.colour`;
/// selectors name them without the leading dot. Fields that only other versions declare are included and marked.
pub fn selectable_fields(version: &Value, all_versions: &[Value]) -> Vec<SelectableField> {
    let own: Vec<&str> = paths(version).collect();
    let mut seen = HashSet::new();
    let all = all_versions.iter().flat_map(paths).filter(|path| seen.insert(*path));
    all.map(|path| SelectableField { of_other_version: !own.contains(&path), ..selectable_field(path) })
        .collect()
}

fn paths(version: &Value) -> impl Iterator<Item = &str> {
    version.items_at("selectableFields").iter().map(|field| field.str_at("jsonPath"))
}

/// The message for an unsupported field selector.
pub fn unsupported_field(field: &str) -> String {
    format!("field label not supported: {field}")
}

fn selectable_field(path: &str) -> SelectableField {
    let name = path.strip_prefix('.').unwrap_or(path);
    SelectableField {
        value: |object, name| object.at(name).map(go_format).unwrap_or_default(),
        ..SelectableField::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn fields_are_compared_as_text() {
        let version = json!({"selectableFields": [
            {"jsonPath": ".spec.colour"},
            {"jsonPath": ".spec.size"},
            {"jsonPath": ".spec.lit"},
            {"jsonPath": ".spec.deep.x"},
            {"jsonPath": ".status.phase"},
        ]});
        let fields = selectable_fields(&version, std::slice::from_ref(&version));
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["spec.colour", "spec.size", "spec.lit", "spec.deep.x", "status.phase"]);
        let check = |object: Value, expected: [&str; 5]| {
            let values: Vec<String> =
                fields.iter().map(|field| (field.value)(&object, &field.name)).collect();
            assert_eq!(values, expected, "{object}");
        };
        check(
            json!({"spec": {"colour": "red", "size": 2, "lit": true, "deep": {"x": "p"}}, "status": {"phase": "Up"}}),
            ["red", "2", "true", "p", "Up"],
        );
        check(json!({"spec": {"lit": false, "size": 0, "colour": null}}), ["", "0", "false", "", ""]);
        check(json!({}), [""; 5]);
        assert!(selectable_fields(&json!({}), &[json!({})]).is_empty());
    }

    #[test]
    fn all_versions_have_the_same_fields_in_the_same_order() {
        let version = |paths: &[&str]| {
            let paths: Vec<Value> = paths.iter().map(|path| json!({"jsonPath": path})).collect();
            json!({"selectableFields": paths})
        };
        let all = [version(&[".spec.a", ".spec.b"]), json!({}), version(&[".spec.c", ".spec.b"])];
        let names = |own: &Value| -> Vec<String> {
            let mark = |field: &SelectableField| if field.of_other_version { "-" } else { "" };
            selectable_fields(own, &all)
                .iter()
                .map(|field| format!("{}{}", mark(field), field.name))
                .collect()
        };
        assert_eq!(names(&all[0]), ["spec.a", "spec.b", "-spec.c"]);
        assert_eq!(names(&all[1]), ["-spec.a", "-spec.b", "-spec.c"]);
        assert_eq!(names(&all[2]), ["-spec.a", "spec.b", "spec.c"]);
    }

    #[test]
    fn other_fields_are_refused_by_name() {
        assert_eq!(unsupported_field(".spec.x"), "field label not supported: .spec.x");
    }
}
