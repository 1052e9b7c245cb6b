//! Validates flow schemas.

use crate::{
    field_checks::{invalid_each, required, supported, texts},
    flowcontrol::conditions,
    rules,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    meta::ObjectMeta,
    validation::{name_is_dns_label, name_is_dns_subdomain},
};

const EXEMPT: &str = "exempt";
const MAX_PRECEDENCE: i64 = 10_000;
const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Validates a schema, new or changed.
pub(super) fn validate(schema: &Value) -> ErrorList {
    let mut errors = rules::metadata(schema, false);
    errors.extend(validate_spec(schema));
    errors.extend(validate_mandatory(schema));
    errors.extend(conditions::validate(schema));
    errors
}

fn validate_spec(schema: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    let precedence = schema.i64_at("spec.matchingPrecedence").unwrap_or_default();
    let mut refuse_precedence = |detail: String| {
        errors.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, detail));
    };
    if precedence <= 0 {
        refuse_precedence("must be a positive value".to_owned());
    }
    if precedence > MAX_PRECEDENCE {
        refuse_precedence(format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence == 1 && schema.name() != EXEMPT {
        refuse_precedence("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }
    if let Some(method) = schema.at("spec.distinguisherMethod") {
        let method_type = method.str_at("type");
        let shown = format!("{{\"Type\":{}}}", Value::from(method_type));
        let wrong = supported(
            method_type,
            &["ByNamespace", "ByUser"],
            &path.child("distinguisherMethod").child("type"),
        );
        // The message contains the whole rule.
        errors.extend(
            wrong
                .into_iter()
                .map(|error| FieldError { bad_value: Some(method.clone()), ..error }.shown_as(shown.clone())),
        );
    }
    let level = schema.str_at("spec.priorityLevelConfiguration.name");
    let level_path = path.child("priorityLevelConfiguration").child("name");
    errors.extend(match level.is_empty() {
        true => vec![FieldError::required(&level_path, "must reference a priority level")],
        false => invalid_each(&level_path, level, name_is_dns_subdomain(level, false)),
    });
    let path = path.child("rules");
    for (index, rule) in schema.items_at("spec.rules").iter().enumerate() {
        errors.extend(validate_rule(rule, &path.index(index)));
    }
    errors
}

fn validate_rule(rule: &Value, path: &FieldPath) -> ErrorList {
    let each = |field: &str, validate: fn(&Value, &FieldPath) -> ErrorList| -> ErrorList {
        let path = path.child(field);
        let items = rule.items_at(field).iter().enumerate();
        items.flat_map(|(index, item)| validate(item, &path.index(index))).collect()
    };
    let is_empty = |field: &str| rule.items_at(field).is_empty();
    let mut errors = each("subjects", validate_subject);
    if is_empty("subjects") {
        let detail = "subjects must contain at least one value";
        errors.push(FieldError::required(&path.child("subjects"), detail));
    }
    if is_empty("resourceRules") && is_empty("nonResourceRules") {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    errors.extend(each("resourceRules", validate_resource_rule));
    errors.extend(each("nonResourceRules", validate_url_rule));
    errors
}

fn validate_subject(subject: &Value, path: &FieldPath) -> ErrorList {
    let kind = subject.str_at("kind");
    let own = match kind {
        "ServiceAccount" => "serviceAccount",
        "User" => "user",
        "Group" => "group",
        _ => return supported(kind, &["Group", "ServiceAccount", "User"], &path.child("kind")),
    };
    let own_path = path.child(own);
    let mut errors = match subject.at(own) {
        None => {
            let detail = format!("{own} is required when subject kind is '{kind}'");
            vec![FieldError::required(&own_path, detail)]
        }
        Some(account) if kind == "ServiceAccount" => validate_service_account(account, &own_path),
        Some(holder) => required(holder, "name", &own_path),
    };
    for (other, kind) in [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")] {
        if other != own && subject.at(other).is_some() {
            let detail = format!("{other} is forbidden when subject kind is not '{kind}'");
            errors.push(FieldError::forbidden(&path.child(other), detail));
        }
    }
    errors
}

fn validate_service_account(account: &Value, path: &FieldPath) -> ErrorList {
    let (name, namespace) = (account.str_at("name"), account.str_at("namespace"));
    let mut errors = match name {
        "" => required(account, "name", path),
        "*" => ErrorList::new(),
        name => invalid_each(&path.child("name"), name, name_is_dns_subdomain(name, false)),
    };
    let path = path.child("namespace");
    errors.extend(match namespace {
        "" => vec![FieldError::required(&path, "must specify namespace for service account")],
        namespace => invalid_each(&path, namespace, name_is_dns_label(namespace, false)),
    });
    errors
}

/// Requires a list that is not empty, and has no other items beside a `*`; returns whether it has a `*`.
fn validate_wildcard(
    rule: &Value,
    field: &str,
    missing: &str,
    others: &str,
    path: &FieldPath,
) -> (ErrorList, bool) {
    let items = rule.items_at(field);
    let path = path.child(field);
    if items.is_empty() {
        return (vec![FieldError::required(&path, missing)], true);
    }
    let has_wildcard = texts(items).any(|item| item == "*");
    if has_wildcard && items.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        return (vec![FieldError::invalid(&path, items.to_vec(), detail)], true);
    }
    (ErrorList::new(), has_wildcard)
}

fn validate_verbs(rule: &Value, path: &FieldPath) -> ErrorList {
    let (mut errors, done) =
        validate_wildcard(rule, "verbs", "verbs must contain at least one value", "verbs", path);
    let verbs = rule.items_at("verbs");
    if !done && !texts(verbs).all(|verb| VERBS.contains(&verb)) {
        errors.push(FieldError::not_supported(&path.child("verbs"), verbs.to_vec(), VERBS));
    }
    errors
}

fn validate_resource_rule(rule: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_verbs(rule, path);
    for (field, missing, others) in [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ] {
        errors.extend(validate_wildcard(rule, field, missing, others, path).0);
    }
    if rule.items_at("namespaces").is_empty() && rule.bool_at("clusterScope") {
        return errors;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    let (wrong, done) = validate_wildcard(rule, "namespaces", missing, "namespaces", path);
    errors.extend(wrong);
    if !done {
        let path = path.child("namespaces");
        for (index, namespace) in texts(rule.items_at("namespaces")).enumerate() {
            let messages = name_is_dns_label(namespace, false).into_iter();
            let messages = messages
                .map(|message| format!("each member of this list must be '*' or a DNS-1123 label; {message}"))
                .collect();
            errors.extend(invalid_each(&path.index(index), namespace, messages));
        }
    }
    errors
}

fn validate_url_rule(rule: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_verbs(rule, path);
    let missing = "nonResourceURLs must contain at least one value";
    let (wrong, done) = validate_wildcard(rule, "nonResourceURLs", missing, "non-resource URLs", path);
    errors.extend(wrong);
    if !done {
        let path = path.child("nonResourceURLs");
        for (index, url) in texts(rule.items_at("nonResourceURLs")).enumerate() {
            if let Some(detail) = wrong_with_url(url) {
                errors.push(FieldError::invalid(&path.index(index), url, detail));
            }
        }
    }
    errors
}

/// Returns the error of a non-resource path, which may end in a `*` for all sub-paths.
fn wrong_with_url(url: &str) -> Option<&'static str> {
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ => match url.matches('*').count() {
            0 => None,
            1 if url.ends_with("/*") => None,
            _ => Some("wildcard can only do suffix matching"),
        },
    }
}

/// Requires that the mandatory schemas are unchanged.
fn validate_mandatory(schema: &Value) -> ErrorList {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let everything = |subjects: Value| {
        json!([{
            "subjects": subjects,
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }])
    };
    let fixed = match schema.name() {
        EXEMPT => json!({
            "priorityLevelConfiguration": {"name": EXEMPT},
            "matchingPrecedence": 1,
            "rules": everything(json!([group("system:masters")])),
        }),
        "catch-all" => json!({
            "priorityLevelConfiguration": {"name": "catch-all"},
            "matchingPrecedence": MAX_PRECEDENCE,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": everything(json!([group("system:unauthenticated"), group("system:authenticated")])),
        }),
        _ => return ErrorList::new(),
    };
    if !rules::differs(schema, &json!({"spec": fixed}), "spec") {
        return ErrorList::new();
    }
    let detail = format!("spec of '{}' must equal the fixed value", schema.name());
    let spec = rules::value_at(schema, "spec").clone();
    let error = FieldError::invalid(&FieldPath::new("spec"), spec, detail);
    vec![pintle_internal_form::show(error, "flowcontrol.FlowSchemaSpec")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: &[&str]) {
        let mut spec = spec;
        spec.set_default("matchingPrecedence", 1000);
        spec.set_default("priorityLevelConfiguration", json!({"name": "l"}));
        let errors = validate(&json!({"metadata": {"name": "a"}, "spec": spec}));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn schemas_are_checked() {
        check(json!({}), &[]);
        check(
            json!({"matchingPrecedence": 1}),
            &[
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
            ],
        );
        check(
            json!({"distinguisherMethod": {"type": "ByMood"}}),
            &[
                r#"spec.distinguisherMethod.type: Unsupported value: {"Type":"ByMood"}: supported values: "ByNamespace", "ByUser""#,
            ],
        );
        check(
            json!({"priorityLevelConfiguration": {}}),
            &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
        );
        check(
            json!({"rules": [{}]}),
            &[
                "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ],
        );
    }

    #[test]
    fn subjects_are_what_their_kind_says() {
        let check = |subject: Value, expected: &[&str]| {
            let errors = validate_subject(&subject, &FieldPath::new("s"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"kind": "User", "user": {"name": "u"}}), &[]);
        check(json!({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "n"}}), &[]);
        check(
            json!({"kind": "User", "group": {"name": "g"}}),
            &[
                "s.user: Required value: user is required when subject kind is 'User'",
                "s.group: Forbidden: group is forbidden when subject kind is not 'Group'",
            ],
        );
        check(
            json!({"kind": "Robot"}),
            &[r#"s.kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User""#],
        );
    }

    #[test]
    fn wildcards_stand_alone() {
        let check = |rule: Value, expected: &[&str]| {
            let errors = validate_resource_rule(&rule, &FieldPath::new("r"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["a"], "clusterScope": true});
        check(rule, &[]);
        check(
            json!({"verbs": ["fly"], "apiGroups": ["*", "a"], "resources": ["a"], "namespaces": ["A"]}),
            &[
                r#"r.verbs: Unsupported value: ["fly"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch""#,
                r#"r.apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other api groups"#,
                "r.namespaces[0]: Invalid value: \"A\": each member of this list must be '*' or a DNS-1123 label; a \
                 lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ],
        );
    }

    #[test]
    fn urls_are_paths() {
        for url in ["/", "/a", "/a/*", "/*"] {
            assert_eq!(wrong_with_url(url), None, "{url}");
        }
        for url in ["", "a", "/a b", "//a", "/a*", "/*/a", "/*/*"] {
            assert!(wrong_with_url(url).is_some(), "{url}");
        }
    }

    #[test]
    fn mandatory_schemas_stay() {
        let rules = json!([{
            "subjects": [{"kind": "Group", "group": {"name": "system:masters"}}],
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }]);
        let mut schema = json!({"metadata": {"name": "exempt"}, "spec": {
            "matchingPrecedence": 1, "priorityLevelConfiguration": {"name": "exempt"}, "rules": rules}});
        assert_eq!(validate(&schema), []);
        schema.set("spec.matchingPrecedence", 2);
        let errors = validate(&schema);
        assert_eq!(
            errors.iter().map(|error| error.to_string()).collect::<Vec<_>>(),
            [
                "spec: Invalid value: {\"PriorityLevelConfiguration\":{\"Name\":\"exempt\"},\"MatchingPrecedence\":2,\
              \"DistinguisherMethod\":null,\"Rules\":[{\"Subjects\":[{\"Kind\":\"Group\",\"User\":null,\
              \"Group\":{\"Name\":\"system:masters\"},\"ServiceAccount\":null}],\"ResourceRules\":[{\"Verbs\":[\"*\"],\
              \"APIGroups\":[\"*\"],\"Resources\":[\"*\"],\"ClusterScope\":true,\"Namespaces\":[\"*\"]}],\
              \"NonResourceRules\":[{\"Verbs\":[\"*\"],\"NonResourceURLs\":[\"*\"]}]}]}: \
              spec of 'exempt' must equal the fixed value"
            ]
        );
    }
}
