//! The rules of roles.

use pintle_auth::authz::Attributes;
use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// One rule of a role: verbs on resources or on non-resource paths.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// The verbs; "*" stands for all.
    #[serde(deserialize_with = "or_none")]
    pub verbs: Vec<String>,
    /// The groups; "*" stands for all.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources, such as `pods` or `pods/log`; "*" stands for all and their subresources, "*/scale" for that
    /// subresource of all.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The object names; an empty list stands for all.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// The paths; "*" at the end matches any continuation.
    #[serde(rename = "nonResourceURLs", deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// Deserializes a list; `null` is an empty list.
pub(crate) fn or_none<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PolicyRule {
    /// The rules of a role's tree. Malformed rules are skipped.
    pub fn of_role(role: &Value) -> Vec<PolicyRule> {
        role.items_at("rules").iter().filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect()
    }

    /// The number of texts in the rule.
    pub(crate) fn texts(&self) -> usize {
        let lists =
            [&self.verbs, &self.api_groups, &self.resources, &self.resource_names, &self.non_resource_urls];
        lists.into_iter().map(Vec::len).sum()
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.is_resource_request {
            true => {
                has(&self.api_groups, attributes.group)
                    && self.resources.iter().any(|own| is_resource(own, attributes))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|own| own == attributes.name))
            }
            false => self.non_resource_urls.iter().any(|own| is_below(own, attributes.path)),
        }
    }
}

/// Whether a list of verbs or groups contains the wanted one or "*".
pub(crate) fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|own| own == wanted || own == "*")
}

/// Whether a resource of a rule matches the request's, without building `resource/subresource`.
fn is_resource(own: &str, attributes: &Attributes<'_>) -> bool {
    let (resource, subresource) = (attributes.resource, attributes.subresource);
    if own == "*" {
        return true;
    }
    if subresource.is_empty() {
        return own == resource;
    }
    let Some(parent) = own.strip_suffix(subresource).and_then(|parent| parent.strip_suffix('/')) else {
        return false;
    };
    parent == resource || parent == "*"
}

/// Whether a path of a rule equals a path, or matches it with a final "*".
pub(crate) fn is_below(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

impl fmt::Display for PolicyRule {
    /// The format of missing rules in messages: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let mut separator = "{";
        for (name, list) in parts.into_iter().filter(|(_, list)| !list.is_empty()) {
            write!(f, "{separator}{name}:{}", quoted_list(list))?;
            separator = ", ";
        }
        f.write_str(if separator == "{" { "{}" } else { "}" })
    }
}

/// The format of lists in messages: quoted texts in brackets.
pub(crate) fn quoted_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{UserInfo, json};

    fn rule(rule: Value) -> PolicyRule {
        PolicyRule::deserialize(&rule).unwrap()
    }

    #[test]
    fn rules_allow_what_they_say() {
        let user = UserInfo::default();
        let check = |own: Value, verb: &str, resource: &str, name: &str, allowed: bool| {
            let (group, resource) = resource.split_once(':').unwrap();
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let attributes = Attributes { group, resource, subresource, name, ..Attributes::of(&user, verb) };
            assert_eq!(rule(own.clone()).allows(&attributes), allowed, "{own} {verb} {resource} {name}");
        };
        let pods = json!({"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]});
        check(pods.clone(), "get", ":pods", "", true);
        check(pods.clone(), "get", ":pods/log", "a", true);
        check(pods.clone(), "get", ":pods/exec", "a", false);
        check(pods.clone(), "delete", ":pods", "a", false);
        check(pods.clone(), "*", ":pods", "a", false);
        check(pods.clone(), "get", "apps:pods", "a", false);
        check(pods, "get", ":log", "a", false);
        let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
        check(all.clone(), "escalate", "x:y/z", "n", true);
        check(all, "get", ":", "", true);
        let scale = json!({"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]});
        check(scale.clone(), "get", "apps:deployments/scale", "a", true);
        check(scale.clone(), "get", "apps:deployments/status", "a", false);
        check(scale.clone(), "get", "apps:deployments/xscale", "a", false);
        check(scale, "get", "apps:deployments", "a", false);
        let named =
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]});
        check(named.clone(), "get", ":secrets", "a", true);
        check(named.clone(), "get", ":secrets", "b", false);
        check(named, "get", ":secrets", "", false);
        check(json!({"nonResourceURLs": ["*"], "verbs": ["*"]}), "get", ":pods", "", false);
    }

    #[test]
    fn rules_allow_paths() {
        let user = UserInfo::default();
        let check = |own: Value, verb: &str, path: &str, allowed: bool| {
            let attributes = Attributes { path, is_resource_request: false, ..Attributes::of(&user, verb) };
            assert_eq!(rule(own.clone()).allows(&attributes), allowed, "{own} {verb} {path}");
        };
        let logs = json!({"nonResourceURLs": ["/logs/*", "/exact"], "verbs": ["get"]});
        check(logs.clone(), "get", "/logs/a/b", true);
        check(logs.clone(), "get", "/logs/", true);
        check(logs.clone(), "get", "/logs", false);
        check(logs.clone(), "get", "/exact", true);
        check(logs.clone(), "get", "/exact/a", false);
        check(logs, "post", "/exact", false);
        check(json!({"nonResourceURLs": ["*"], "verbs": ["*"]}), "put", "/", true);
        check(json!({"nonResourceURLs": ["/a**"], "verbs": ["*"]}), "put", "/abc", true);
        check(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}), "get", "/metrics", false);
    }

    #[test]
    fn rules_are_shown_as_messages_show_them() {
        let shown = |own: Value| rule(own).to_string();
        let names = json!({"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["d\"b"], "verbs": ["get", "list"]});
        assert_eq!(
            shown(names),
            r#"{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["d\"b"], Verbs:["get" "list"]}"#
        );
        assert_eq!(
            shown(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"], "resources": null})),
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#
        );
        assert_eq!(shown(json!({})), "{}");
    }
}
