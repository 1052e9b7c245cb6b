//! What custom resources can be selected by
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources/#field-selectors>).

use pintle_machinery::{Value, ValueExt, text::go_format};
use pintle_registry::SelectableField;

/// The selectable fields of one version, from its part of a definition. Their paths are simple ones, `.spec.colour`;
/// selectors name them without the leading dot.
pub fn selectable_fields(version: &Value) -> Vec<SelectableField> {
    let paths = version.items_at("selectableFields").iter().map(|field| field.str_at("jsonPath"));
    paths.map(selectable_field).collect()
}

/// How a selector that names another field is refused.
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
    use serde_json::json;

    #[test]
    fn fields_are_compared_as_text() {
        let version = json!({"selectableFields": [
            {"jsonPath": ".spec.colour"},
            {"jsonPath": ".spec.size"},
            {"jsonPath": ".spec.lit"},
            {"jsonPath": ".spec.deep.x"},
            {"jsonPath": ".status.phase"},
        ]});
        let fields = selectable_fields(&version);
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
        assert!(selectable_fields(&json!({})).is_empty());
    }

    #[test]
    fn other_fields_are_refused_by_name() {
        assert_eq!(unsupported_field(".spec.x"), "field label not supported: .spec.x");
    }
}
