//! Validates the policy rules of roles.

use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// Validates the rules of a role. Rules of a namespaced role must not have non-resource URLs.
pub(super) fn validate_rules(role: &Value, namespaced: bool) -> ErrorList {
    let path = FieldPath::new("rules");
    let rules = role.items_at("rules").iter().enumerate();
    rules.flat_map(|(index, rule)| validate(rule, namespaced, &path.index(index))).collect()
}

fn validate(rule: &Value, namespaced: bool, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_empty = |field: &str| rule.items_at(field).is_empty();
    let mut require = |field: &str, detail: &str| {
        if is_empty(field) {
            errors.push(FieldError::required(&path.child(field), detail));
        }
    };
    require("verbs", "verbs must contain at least one value");
    if is_empty("nonResourceURLs") {
        require("apiGroups", "resource rules must supply at least one api group");
        require("resources", "resource rules must supply at least one resource");
        return errors;
    }
    let mut refuse = |detail: &str| {
        let urls = rule.items_at("nonResourceURLs").to_vec();
        errors.push(FieldError::invalid(&path.child("nonResourceURLs"), urls, detail));
    };
    if namespaced {
        refuse("namespaced rules cannot apply to non-resource URLs");
    }
    if ["apiGroups", "resources", "resourceNames"].into_iter().any(|field| !is_empty(field)) {
        refuse("rules cannot apply to both regular resources and non-resource URLs");
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn rules_are_about_resources_or_urls() {
        let check = |rule: Value, namespaced: bool, expected: &[&str]| {
            let errors = validate_rules(&json!({"rules": [rule]}), namespaced);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let resources = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
        check(resources.clone(), true, &[]);
        check(resources, false, &[]);
        check(json!({"nonResourceURLs": ["/healthz"], "verbs": ["get"]}), false, &[]);
        check(
            json!({}),
            true,
            &[
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
        );
        check(
            json!({"nonResourceURLs": ["/a"], "resourceNames": ["x"], "verbs": ["get"]}),
            true,
            &[
                r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs"#,
                r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs"#,
            ],
        );
    }
}
