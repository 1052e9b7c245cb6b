//! Table cells that policies and their bindings share.

use crate::printing::UNSET;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::Cell;

/// The kind of a policy's parameters as `version/kind`.
pub(super) fn param_kind(policy: &Value) -> Cell {
    match policy.at("spec.paramKind") {
        Some(kind) => format!("{}/{}", kind.str_at("apiVersion"), kind.str_at("kind")).into(),
        None => UNSET.into(),
    }
}

/// The parameters of a binding: `namespace/name`, with `*` for an absent namespace, or a selector.
pub(super) fn param_ref(binding: &Value) -> Cell {
    let parameters = binding.at("spec.paramRef").unwrap_or(&Value::Null);
    let text = match (parameters.str_at("name"), parameters.str_at("namespace")) {
        ("", _) => match parameters.at("selector") {
            Some(selector) => selector_text(selector),
            None => UNSET.to_owned(),
        },
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    text.into()
}

/// Formats a label selector as a Go struct, as in the reference.
fn selector_text(selector: &Value) -> String {
    let labels: String = selector
        .map_at("matchLabels")
        .iter()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let expressions: String = selector
        .items_at("matchExpressions")
        .iter()
        .map(|expression| {
            let values: Vec<&str> = expression.items_at("values").iter().filter_map(Value::as_str).collect();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                expression.str_at("key"),
                expression.str_at("operator"),
                values.join(" "),
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn parameters_print_by_name_or_selector() {
        let check = |parameters: Value, expected: &str| {
            assert_eq!(param_ref(&json!({"spec": {"paramRef": parameters}})), json!(expected));
        };
        check(Value::Null, "<unset>");
        check(json!({"name": "p"}), "*/p");
        check(json!({"name": "p", "namespace": "n"}), "n/p");
        check(
            json!({"selector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}],
            }}),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
        );
    }
}
