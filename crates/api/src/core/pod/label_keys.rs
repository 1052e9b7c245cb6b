//! Adds the requirements of `matchLabelKeys` and `mismatchLabelKeys` to the selectors of a new pod: the keys, with the
//! values of the pod's own labels

use crate::core::pod_spec::topology_spread::merges_label_keys;
use pintle_machinery::{Map, Value, ValueExt, json};

/// The lists of terms under `spec.affinity`, with the field of an item that contains the term ("" for the item itself).
const AFFINITY_TERMS: [(&str, &str); 2] = [
    ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
    ("requiredDuringSchedulingIgnoredDuringExecution", ""),
];

/// Adds the requirements to the selectors of the pod's affinity terms and topology spread constraints.
pub(super) fn merge_into_selectors(pod: &mut Value) {
    if pod.at("spec.affinity").is_none() && pod.items_at("spec.topologySpreadConstraints").is_empty() {
        return;
    }
    let labels = pod.map_at("metadata.labels").clone();
    for affinity in ["podAffinity", "podAntiAffinity"] {
        for (list, term_field) in AFFINITY_TERMS {
            for item in pod.items_at_mut(&format!("spec.affinity.{affinity}.{list}")) {
                let term = if term_field.is_empty() { Some(item) } else { item.at_mut(term_field) };
                if let Some(term) = term {
                    merge(term, "matchLabelKeys", "In", &labels);
                    merge(term, "mismatchLabelKeys", "NotIn", &labels);
                }
            }
        }
    }
    if merges_label_keys() {
        for constraint in pod.items_at_mut("spec.topologySpreadConstraints") {
            merge(constraint, "matchLabelKeys", "In", &labels);
        }
    }
}

/// Adds the requirements of one field to a term. An absent selector stays absent, because it matches nothing.
fn merge(term: &mut Value, keys_field: &str, operator: &str, labels: &Map) {
    let requirements: Vec<Value> = term
        .items_at(keys_field)
        .iter()
        .filter_map(Value::as_str)
        .filter_map(|key| Some(json!({"key": key, "operator": operator, "values": [labels.get(key)?]})))
        .collect();
    if requirements.is_empty() || term.at("labelSelector").is_none() {
        return;
    }
    let selector = term.object_at_mut("labelSelector");
    let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    match expressions.as_array_mut() {
        Some(expressions) => expressions.extend(requirements),
        None => *expressions = Value::Array(requirements),
    }
}

#[cfg(test)]
mod tests {
    use super::merge_into_selectors;
    use pintle_machinery::json;

    #[test]
    fn own_labels_become_requirements() {
        let mut pod = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}},
            "spec": {
                "affinity": {"podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {}, "matchLabelKeys": ["a", "none"], "mismatchLabelKeys": ["b"]},
                        {"matchLabelKeys": ["a"]},
                    ],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"podAffinityTerm": {"labelSelector": {"matchLabels": {"x": "y"}}, "matchLabelKeys": ["a"]}},
                    ],
                }},
                "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["b"]}],
            },
        });
        merge_into_selectors(&mut pod);
        let terms = pod.pointer("/spec/affinity/podAntiAffinity").unwrap();
        assert_eq!(
            terms.pointer("/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector").unwrap(),
            &json!({"matchExpressions": [
                {"key": "a", "operator": "In", "values": ["1"]},
                {"key": "b", "operator": "NotIn", "values": ["2"]},
            ]})
        );
        assert_eq!(terms.pointer("/requiredDuringSchedulingIgnoredDuringExecution/1/labelSelector"), None);
        assert_eq!(
            terms
                .pointer("/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/labelSelector")
                .unwrap(),
            &json!({"matchLabels": {"x": "y"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]})
        );
        assert_eq!(
            pod.pointer("/spec/topologySpreadConstraints/0/labelSelector").unwrap(),
            &json!({"matchExpressions": [{"key": "b", "operator": "In", "values": ["2"]}]})
        );
    }
}
