//! Validates topology spread constraints
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/>), and the label keys that
//! affinity terms also have.

use super::PodValidationOptions;
use crate::field_checks::{supported, texts};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{LabelSelectorOptions, validate_label_name, validate_label_selector};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Text, Value, ValueExt};
use std::collections::{HashMap, HashSet};

const MUST_BE_POSITIVE: &str = "must be greater than zero";
const IN_BOTH: &str = "exists in both matchLabelKeys and labelSelector";
const NO_SELECTOR: &str = "must not be specified when labelSelector is not set";

/// Validates `topologySpreadConstraints`.
pub(super) fn validate(constraints: &[Value], options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let identity =
        |constraint| ["topologyKey", "whenUnsatisfiable"].map(|field| Value::str_at(constraint, field));
    let last: HashMap<_, usize> =
        constraints.iter().enumerate().map(|(index, constraint)| (identity(constraint), index)).collect();
    for (index, constraint) in constraints.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (key, when) = (constraint.str_at("topologyKey"), constraint.str_at("whenUnsatisfiable"));
        let skew = constraint.i64_at("maxSkew").unwrap_or_default();
        if skew <= 0 {
            errors.push(FieldError::invalid(&path.child("maxSkew"), skew, MUST_BE_POSITIVE));
        }
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        errors.extend(supported(
            when,
            &["DoNotSchedule", "ScheduleAnyway"],
            &path.child("whenUnsatisfiable"),
        ));
        if last.get(&[key, when]).is_some_and(|last| *last > index) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {when}}}")));
        }
        if let Some(domains) = constraint.i64_at("minDomains") {
            let path = path.child("minDomains");
            if domains <= 0 {
                errors.push(FieldError::invalid(&path, domains, MUST_BE_POSITIVE));
            }
            if when != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
                errors.push(FieldError::invalid(&path, domains, detail));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.at(field).is_some() {
                let policy = constraint.str_at(field);
                errors.extend(supported(policy, &["Honor", "Ignore"], &path.child(field)));
            }
        }
        errors.extend(if options.has_unmerged_label_keys {
            validate_label_keys_leniently(constraint, &path.child("matchLabelKeys"))
        } else {
            validate_label_keys(constraint, &path)
        });
        if !options.allow_invalid_topology_spread_selector {
            let selector = constraint.at("labelSelector").unwrap_or(&Value::Null);
            let path = path.child("labelSelector");
            errors.extend(validate_label_selector(selector, LabelSelectorOptions::default(), &path));
        }
    }
    errors
}

/// Whether the label keys of new pods are merged into the selectors of their constraints.
pub(in crate::core) fn merges_label_keys() -> bool {
    enabled(Gate::MatchLabelKeysInPodTopologySpread)
        && enabled(Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge)
}

/// Whether label keys follow [`validate_label_keys_leniently`] and not [`validate_label_keys`]: where they are not merged;
/// but a stored spec that violates the rules that would apply gets the others.
pub(super) fn has_unmerged_label_keys(old: Option<&Value>) -> bool {
    let violates = |validate: fn(&Value, &FieldPath) -> ErrorList| {
        let constraints = old.into_iter().flat_map(|old| old.items_at("topologySpreadConstraints"));
        constraints
            .map(|constraint| validate(constraint, &FieldPath::default()))
            .any(|errors| !errors.is_empty())
    };
    match merges_label_keys() {
        true => violates(validate_label_keys),
        false => {
            !enabled(Gate::MatchLabelKeysInPodTopologySpread) || !violates(validate_label_keys_leniently)
        }
    }
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` of a constraint or an affinity term. The selector may contain one
/// requirement for each key of `matchLabelKeys`, the one that is added to a new pod; a second one is rejected.
pub(super) fn validate_label_keys(term: &Value, path: &FieldPath) -> ErrorList {
    let selector = term.at("labelSelector");
    let mut errors = ErrorList::new();
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = term.items_at(field);
        let path = path.child(field);
        if !keys.is_empty() && selector.is_none() {
            errors.push(FieldError::forbidden(&path, NO_SELECTOR));
            continue;
        }
        for (index, key) in texts(keys).enumerate() {
            if is_enough(&errors) {
                break;
            }
            errors.extend(validate_label_name(key, &path.index(index)));
        }
    }
    let match_keys = term.items_at("matchLabelKeys");
    if let Some(selector) = selector {
        let indices: HashMap<&str, usize> =
            texts(match_keys).enumerate().map(|(index, key)| (key, index)).collect();
        let mut seen: HashSet<&str> = selector.map_at("matchLabels").keys().map(Text::as_str).collect();
        for expression in selector.items_at("matchExpressions") {
            let key = expression.str_at("key");
            if let Some(index) = indices.get(key)
                && seen.contains(key)
            {
                errors.push(FieldError::invalid(&path.index(*index), key, IN_BOTH));
            }
            seen.insert(key);
        }
    }
    let mismatch_keys: HashSet<&str> = texts(term.items_at("mismatchLabelKeys")).collect();
    for (index, key) in texts(match_keys).enumerate() {
        if is_enough(&errors) {
            break;
        }
        if mismatch_keys.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&path.child("matchLabelKeys").index(index), key, detail));
        }
    }
    errors
}

/// Validates by the older rules, from before the keys were added to the selector.
fn validate_label_keys_leniently(constraint: &Value, path: &FieldPath) -> ErrorList {
    let keys = constraint.items_at("matchLabelKeys");
    let mut errors = ErrorList::new();
    let mut selector_keys: HashSet<&str> = HashSet::new();
    match constraint.at("labelSelector") {
        _ if keys.is_empty() => return errors,
        None => errors.push(FieldError::forbidden(path, NO_SELECTOR)),
        Some(selector) => {
            selector_keys.extend(selector.map_at("matchLabels").keys().map(Text::as_str));
            selector_keys.extend(selector.items_at("matchExpressions").iter().map(|e| e.str_at("key")));
        }
    }
    for (index, key) in texts(keys).enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_label_name(key, &path.index(index)));
        if selector_keys.contains(key) {
            errors.push(FieldError::invalid(&path.index(index), key, IN_BOTH));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn a_stored_spec_that_violates_the_rules_in_force_gets_the_others() {
        let spec = |key: &str| {
            json!({"topologySpreadConstraints": [{
                "labelSelector": {"matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["a"]},
                    {"key": "version", "operator": "In", "values": ["1"]},
                    {"key": "version", "operator": "In", "values": ["2"]},
                ]},
                "matchLabelKeys": [key],
            }]})
        };
        // A key may be in the selector once under the newer rules, and not at all under the older ones.
        let (once, twice) = (spec("app"), spec("version"));
        let unmerged = |old: &Value| has_unmerged_label_keys(Some(old));
        assert!(!has_unmerged_label_keys(None) && !unmerged(&once) && unmerged(&twice));
        let gates = FeatureGates::default();
        let not_merged = gates.with(Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge, false);
        {
            let _gates = override_gates(&not_merged);
            assert!(has_unmerged_label_keys(None) && !unmerged(&once) && !unmerged(&twice));
            assert!(unmerged(&spec("other")));
        }
        let _gates = override_gates(&not_merged.with(Gate::MatchLabelKeysInPodTopologySpread, false));
        assert!(has_unmerged_label_keys(None) && unmerged(&once) && unmerged(&twice));
    }
}
