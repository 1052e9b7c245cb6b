//! Validates storage versions.

use crate::{field_checks::invalid_each, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    validation::{
        empty_error, is_dns1035_label, is_dns1123_subdomain, is_qualified_name, name_is_dns_subdomain,
        regex_error, validate_object_meta,
    },
};
use std::collections::{HashMap, HashSet};

const COMMON: &str = "status.commonEncodingVersion";

/// Validates a new object.
pub(super) fn validate(object: &Value) -> ErrorList {
    let name = |name: &str, _| validate_name(name);
    let mut errors = validate_object_meta(object, false, name, &FieldPath::new("metadata"));
    errors.extend(validate_status(object));
    errors
}

/// Validates the status.
pub(super) fn validate_status(object: &Value) -> ErrorList {
    let path = FieldPath::new("status");
    let servers = object.items_at("status.storageVersions");
    let mut errors = ErrorList::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, server) in servers.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.child("storageVersions").index(index);
        if !seen.insert(server.str_at("apiServerID")) {
            errors.push(FieldError::duplicate(&path.child("apiServerID"), server.str_at("apiServerID")));
        }
        errors.extend(validate_server(server, &path));
    }
    errors.extend(validate_common(object, servers));
    errors.extend(validate_conditions(object.items_at("status.conditions"), &path));
    errors
}

/// The name is the group and the resource.
fn validate_name(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = is_dns1123_subdomain(group).into_iter().map(|message| format!("the group segment {message}"));
    let resource = is_dns1035_label(resource).into_iter();
    group.chain(resource.map(|message| format!("the resource segment {message}"))).collect()
}

fn validate_server(server: &Value, path: &FieldPath) -> ErrorList {
    let (id, encoding) = (server.str_at("apiServerID"), server.str_at("encodingVersion"));
    let mut errors = invalid_each(&path.child("apiServerID"), id, name_is_dns_subdomain(id, false));
    errors.extend(validate_version(encoding, &path.child("encodingVersion")));
    let texts = |field: &str| -> Vec<&str> {
        server.items_at(field).iter().map(|version| version.as_str().unwrap_or_default()).collect()
    };
    let (decodable, served) = (texts("decodableVersions"), texts("servedVersions"));
    let decodable_path = path.child("decodableVersions");
    for (index, version) in decodable.iter().enumerate() {
        errors.extend(validate_version(version, &decodable_path.index(index)));
    }
    let known: HashSet<&str> = decodable.iter().copied().collect();
    if !known.contains(encoding) {
        let detail = format!("decodableVersions must include encodingVersion {encoding}");
        let shown = rules::value_at(server, "decodableVersions").clone();
        errors.push(FieldError::invalid(&decodable_path, shown, detail));
    }
    for (index, version) in served.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.child("servedVersions").index(index);
        errors.extend(validate_version(version, &path));
        if !known.contains(version) {
            let detail = format!(
                "individual served version : {version} must be included in decodableVersions : [{}]",
                words(&decodable)
            );
            errors.push(FieldError::invalid(&path, *version, detail));
        }
    }
    errors
}

/// The words for a message, up to a maximum length: a client chooses the number of words and of messages.
fn words(words: &[&str]) -> String {
    const MAX_LENGTH: usize = 1024;
    let mut text = words.join(" ");
    if let Some(end) =
        (0..MAX_LENGTH).rev().find(|end| text.is_char_boundary(*end)).filter(|_| text.len() > MAX_LENGTH)
    {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// The version that all servers store; it is set exactly if they agree.
fn validate_common(object: &Value, servers: &[Value]) -> Option<FieldError> {
    let mut versions = servers.iter().map(|server| server.str_at("encodingVersion"));
    let first = versions.next();
    let actual = first.filter(|first| versions.all(|version| version == *first));
    let path = FieldPath::new(COMMON);
    match (actual, object.at(COMMON).and_then(Value::as_str)) {
        (None, None) => None,
        (None, Some(common)) => {
            let detail = "should be nil if servers do not agree on the same encoding version, or if there is no server \
                          reporting the supported versions yet";
            Some(FieldError::invalid(&path, common, detail))
        }
        (Some(actual), None) => {
            let detail = format!("the common encoding version is {actual}");
            Some(FieldError::invalid(&path, Value::Null, detail))
        }
        (Some(actual), Some(common)) if actual != common => {
            let detail = format!("the actual common encoding version is {actual}");
            Some(FieldError::invalid(&path, common, detail))
        }
        _ => None,
    }
}

/// As in the reference, the paths of conditions do not contain the field's name.
fn validate_conditions(conditions: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, condition) in conditions.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (condition_type, status) = (condition.str_at("type"), condition.str_at("status"));
        if let Some(earlier) = seen.insert(condition_type, index) {
            let detail =
                format!("the type of the condition is not unique, it also appears in conditions[{earlier}]");
            errors.push(FieldError::invalid(&path.child("type"), condition_type, detail));
        }
        errors.extend(invalid_each(&path.child("type"), condition_type, is_qualified_name(condition_type)));
        errors.extend(invalid_each(&path.child("status"), status, is_qualified_name(status)));
        for member in ["reason", "message"] {
            if condition.str_at(member).is_empty() {
                errors.push(FieldError::required(&path.child(member), ""));
            }
        }
    }
    errors
}

/// Requires `version` or `group/version`.
fn validate_version(text: &str, path: &FieldPath) -> Option<FieldError> {
    const LABEL: &str = "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with \
                         an alphabetic character, and end with an alphanumeric character";
    let (group, version) = match text.split_once('/') {
        None => (None, text),
        Some((_, version)) if version.contains('/') => {
            let detail = format!(
                "an apiVersion is {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')",
                regex_error(LABEL, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"])
            );
            return Some(FieldError::invalid(path, text, detail));
        }
        Some((group, version)) => (Some(group), version),
    };
    let part = |name: &str, text: &str, check: fn(&str) -> Vec<String>| -> Vec<String> {
        let messages = if text.is_empty() { vec![empty_error()] } else { check(text) };
        messages.into_iter().map(|message| format!("{name} part: {message}")).collect()
    };
    let mut wrong = group.map(|group| part("group", group, is_dns1123_subdomain)).unwrap_or_default();
    wrong.extend(part("version", version, is_dns1035_label));
    (!wrong.is_empty()).then(|| FieldError::invalid(path, text, wrong.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn names_are_groups_and_resources() {
        let check = |name: &str, expected: usize| assert_eq!(validate_name(name).len(), expected, "{name}");
        check("example.com.things", 0);
        check("apps.deployments", 0);
        check("things", 1);
        check(".pods", 1);
        check("Bad_.Bad_", 2);
    }

    #[test]
    fn servers_store_what_they_decode() {
        let check = |status: Value, expected: &[&str]| {
            let errors = validate_status(&json!({"status": status}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let server = |id: &str, version: &str| json!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]});
        check(json!({}), &[]);
        check(json!({"storageVersions": [server("a", "v1")], "commonEncodingVersion": "v1"}), &[]);
        check(json!({"storageVersions": [server("a", "v1"), server("b", "apps/v2")]}), &[]);
        check(
            json!({"storageVersions": [server("a", "v1"), server("a", "v1")], "commonEncodingVersion": "v2"}),
            &[
                "status.storageVersions[1].apiServerID: Duplicate value: \"a\"",
                "status.commonEncodingVersion: Invalid value: \"v2\": the actual common encoding version is v1",
            ],
        );
        check(
            json!({"storageVersions": [{
                "apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1", "v2"], "servedVersions": ["v3"],
            }], "commonEncodingVersion": "v1"}),
            &[
                "status.storageVersions[0].servedVersions[0]: Invalid value: \"v3\": individual served version : v3 must be included in decodableVersions : [v1 v2]",
            ],
        );
        check(
            json!({"conditions": [{"type": "A", "status": "True", "reason": "R"}]}),
            &["status[0].message: Required value"],
        );
    }
}
