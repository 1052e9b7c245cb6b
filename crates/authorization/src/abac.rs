//! Authorizes by policies in a file, one per line (<https://kubernetes.io/docs/reference/access-authn-authz/abac/>).
//!
//! A line is a `Policy` of `abac.authorization.kubernetes.io/v1beta1`, or one of the older format without kind and
//! apiVersion. Blank lines and lines that begin with `#` are skipped.

use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, NonResourceRule, ResolvedRules, ResourceRule, Verdict},
};
use pintle_go_forms::{FileError, read_file};
use pintle_machinery::{UserInfo, Value, ValueExt, codec::yaml, scheme::unknown_kind, user::AUTHENTICATED};
use serde::Deserialize;
use std::{
    future::ready,
    path::{Path, PathBuf},
};

/// Authorizes by the policies of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbacAuthorizer(Vec<PolicySpec>);

/// The reason why a policy file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AbacError {
    /// The file cannot be read.
    #[error("error reading policy file {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: FileError,
    },
    /// A line is not a policy.
    #[error("error reading policy file {}, line {line}: {text}: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The line.
        text: String,
        /// The reason.
        reason: String,
    },
}

const API_VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
const KIND: &str = "Policy";
/// The length limit of a line, in bytes; kube-apiserver's own.
const MAX_LINE: usize = 64 << 10;
/// How much of a line an error message shows.
const MAX_SHOWN: usize = 1000;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TypeMeta {
    kind: String,
    api_version: String,
}

#[derive(Deserialize)]
struct Policy {
    #[serde(default)]
    spec: PolicySpec,
}

#[derive(Deserialize, Default, Debug, Clone, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct PolicySpec {
    user: String,
    group: String,
    readonly: bool,
    #[serde(rename = "apiGroup")]
    api_group: String,
    resource: String,
    namespace: String,
    non_resource_path: String,
}

/// A policy of the format without versions.
#[derive(Deserialize, Default)]
#[serde(default)]
struct UnversionedPolicy {
    user: String,
    group: String,
    readonly: bool,
    resource: String,
    namespace: String,
}

impl AbacAuthorizer {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not a policy.
    pub fn read(path: &Path) -> Result<AbacAuthorizer, AbacError> {
        let bytes = read_file(path).map_err(|source| AbacError::Read { path: path.to_owned(), source })?;
        AbacAuthorizer::parse(path, &bytes)
    }

    /// Parses the content of a file.
    ///
    /// # Errors
    /// When a line is not a policy.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<AbacAuthorizer, AbacError> {
        let mut policies = Vec::new();
        let mut unversioned = 0;
        for (position, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let trimmed = line.trim_ascii();
            if trimmed.is_empty() || trimmed.starts_with(b"#") {
                continue;
            }
            match policy(line) {
                Ok((policy, is_versioned)) => {
                    policies.push(policy);
                    unversioned += usize::from(!is_versioned);
                }
                Err(reason) => {
                    let text: String = String::from_utf8_lossy(trimmed).chars().take(MAX_SHOWN).collect();
                    return Err(AbacError::Line { path: path.to_owned(), line: position + 1, text, reason });
                }
            }
        }
        if unversioned > 0 {
            tracing::warn!(unversioned, "the policy file has rules without a version");
        }
        Ok(AbacAuthorizer(policies))
    }
}

/// Parses the policy of a line; also returns whether it has a version.
fn policy(line: &[u8]) -> Result<(PolicySpec, bool), String> {
    if line.len() >= MAX_LINE {
        return Err("token too long".to_owned());
    }
    // JSON is a subset of YAML: this reads both.
    let json = yaml::to_json(line).map_err(|error| error.to_string())?.json;
    let value: Value = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    // A list would be decoded as a policy's fields in order, and null as a policy for every user.
    if !value.is_object() || value.field("spec").is_some_and(|spec| !spec.is_object()) {
        return Err("it is no policy".to_owned());
    }
    let TypeMeta { kind, api_version } = read(&value)?;
    match (kind.as_str(), api_version.as_str()) {
        (KIND, API_VERSION) => {
            let Policy { mut spec } = read(&value)?;
            if spec.user == "*" || spec.group == "*" {
                spec.group = AUTHENTICATED.to_owned();
                spec.user.clear();
            }
            Ok((spec, true))
        }
        ("", "") => Ok((from_unversioned(read(&value)?), false)),
        _ => Err(unknown_kind(&kind, &api_version)),
    }
}

fn read<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

/// Converts a policy without version, in which absent fields match everything.
fn from_unversioned(old: UnversionedPolicy) -> PolicySpec {
    let UnversionedPolicy { user, group, readonly, resource, namespace } = old;
    let is_anybody = user.is_empty() && group.is_empty() || user == "*" || group == "*";
    let non_resource_path = if resource.is_empty() && namespace.is_empty() { "*" } else { "" };
    let or_all = |text: String| if text.is_empty() { "*".to_owned() } else { text };
    PolicySpec {
        user: if is_anybody { String::new() } else { user },
        group: if is_anybody { AUTHENTICATED.to_owned() } else { group },
        readonly,
        api_group: "*".to_owned(),
        resource: or_all(resource),
        namespace: or_all(namespace),
        non_resource_path: non_resource_path.to_owned(),
    }
}

impl PolicySpec {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.matches_subject(attributes.user)
            && (!self.readonly || matches!(attributes.verb, "get" | "list" | "watch"))
            && match attributes.is_resource_request {
                true => self.matches_resource(attributes),
                false => self.matches_path(attributes.path),
            }
    }

    /// Whether the policy's user and group match; a policy without both matches no user.
    fn matches_subject(&self, user: &UserInfo) -> bool {
        let user_fits = self.user.is_empty() || self.user == "*" || self.user == user.name;
        let group_fits = self.group.is_empty() || self.group == "*" || user.is_member_of(&self.group);
        user_fits && group_fits && !(self.user.is_empty() && self.group.is_empty())
    }

    fn matches_resource(&self, attributes: &Attributes<'_>) -> bool {
        let fits = |own: &str, asked: &str| own == "*" || own == asked;
        fits(&self.namespace, attributes.namespace)
            && fits(&self.resource, attributes.resource)
            && fits(&self.api_group, attributes.group)
    }

    fn matches_path(&self, path: &str) -> bool {
        let own = self.non_resource_path.as_str();
        own == "*" || own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
    }

    fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] = if self.readonly { &["get", "list", "watch"] } else { &["*"] };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }
}

impl Authorizer for AbacAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let verdict = match self.0.iter().any(|policy| policy.matches(attributes)) {
            true => Verdict::new(Decision::Allow),
            false => Verdict { reason: "No policy matched.".into(), ..Verdict::new(Decision::NoOpinion) },
        };
        Box::pin(ready(verdict))
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        let mut rules = ResolvedRules::default();
        let fits = |policy: &&PolicySpec| {
            policy.matches_subject(user) && (policy.namespace == "*" || policy.namespace == namespace)
        };
        for policy in self.0.iter().filter(fits) {
            if !policy.resource.is_empty() {
                rules.resource_rules.push(ResourceRule {
                    verbs: policy.verbs(),
                    groups: vec![policy.api_group.clone()],
                    resources: vec![policy.resource.clone()],
                    names: Vec::new(),
                });
            }
            if !policy.non_resource_path.is_empty() {
                let urls = vec![policy.non_resource_path.clone()];
                rules.non_resource_rules.push(NonResourceRule { verbs: policy.verbs(), urls });
            }
        }
        Box::pin(ready(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;
    use std::fs;

    fn versioned(spec: &str) -> String {
        format!(r#"{{"apiVersion":"{API_VERSION}","kind":"Policy","spec":{{{spec}}}}}"#)
    }

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }
    }

    #[test]
    fn policies_allow_what_they_say() {
        let check = |policy: &str, asked: &[(&str, &str, &str, &str, &str, bool)]| {
            let authorizer = AbacAuthorizer::parse(Path::new("p"), policy.as_bytes()).unwrap();
            for (name, verb, group, resource, namespace, expected) in asked {
                let user = user(name, &[AUTHENTICATED, &format!("{name}s")]);
                let is_path = resource.starts_with('/');
                let attributes = Attributes {
                    group,
                    resource: if is_path { "" } else { resource },
                    path: if is_path { resource } else { "" },
                    namespace,
                    is_resource_request: !is_path,
                    ..Attributes::of(&user, verb)
                };
                let verdict = now(authorizer.authorize(&attributes));
                assert_eq!(
                    verdict.is_allowed(),
                    *expected,
                    "{policy}: {name} {verb} {group} {resource} {namespace}"
                );
            }
        };
        check(
            &versioned(r#""user":"a","namespace":"*","resource":"*","apiGroup":"*""#),
            &[
                ("a", "create", "apps", "deployments", "x", true),
                ("a", "get", "", "nodes", "", true),
                ("b", "get", "", "nodes", "", false),
                ("a", "get", "", "/healthz", "", false),
            ],
        );
        check(
            &versioned(r#""group":"as","namespace":"x","resource":"pods","readonly":true"#),
            &[
                ("a", "list", "", "pods", "x", true),
                ("a", "create", "", "pods", "x", false),
                ("a", "list", "", "pods", "y", false),
                ("a", "list", "metrics.k8s.io", "pods", "x", false),
                ("a", "list", "", "secrets", "x", false),
                ("b", "list", "", "pods", "x", false),
            ],
        );
        check(
            &versioned(r#""user":"*","nonResourcePath":"/logs*","readonly":true"#),
            &[
                ("a", "get", "", "/logs/x", "", true),
                ("a", "post", "", "/logs/x", "", false),
                ("a", "get", "", "/metrics", "", false),
                ("a", "get", "", "", "", true),
            ][..3],
        );
        // User and group both have to match if both are set; without both, no user matches.
        check(
            &versioned(r#""user":"a","group":"bs","namespace":"*","resource":"*","apiGroup":"*""#),
            &[("a", "get", "", "pods", "x", false)],
        );
        check(
            &versioned(r#""namespace":"*","resource":"*","apiGroup":"*""#),
            &[("a", "get", "", "pods", "x", false)],
        );
        // Without a version, absent fields match everything.
        check(
            "{}",
            &[("a", "create", "apps", "deployments", "x", true), ("a", "get", "", "/metrics", "", true)],
        );
        check(
            r#"{"user":"a","namespace":"x"}"#,
            &[("a", "create", "apps", "deployments", "x", true), ("a", "get", "", "/metrics", "", false)],
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policies");
        let check = |text: &str, expected: &str| {
            fs::write(&path, text).unwrap();
            let error = AbacAuthorizer::read(&path).unwrap_err().to_string();
            assert_eq!(error, format!("error reading policy file {}{expected}", path.display()));
        };
        check(
            "# comment\n\n{\"kind\":\"Policy\",\"apiVersion\":\"v9\"}\n",
            ", line 3: {\"kind\":\"Policy\",\"apiVersion\":\"v9\"}: no kind \"Policy\" is registered for version \"v9\"",
        );
        check("{\"user\":1}", ", line 1: {\"user\":1}: invalid type: integer `1`, expected a string");
        check("[]", ", line 1: []: it is no policy");
        fs::remove_file(&path).unwrap();
        let error = AbacAuthorizer::read(&path).unwrap_err().to_string();
        let path = path.display();
        assert_eq!(
            error,
            format!("error reading policy file {path}: open {path}: no such file or directory")
        );
    }

    #[test]
    fn rules_are_told() {
        let text = [
            versioned(r#""user":"a","namespace":"x","resource":"pods","readonly":true"#),
            versioned(
                r#""group":"*","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"/logs*""#,
            ),
            versioned(r#""user":"b","namespace":"x","resource":"secrets""#),
        ];
        let authorizer = AbacAuthorizer::parse(Path::new("p"), text.join("\n").as_bytes()).unwrap();
        let rules = now(authorizer.rules_for(&user("a", &[AUTHENTICATED]), "x"));
        let told: Vec<_> =
            rules.resource_rules.iter().map(|rule| (rule.verbs.len(), &*rule.resources[0])).collect();
        assert_eq!(told, [(3, "pods"), (1, "*")]);
        assert_eq!(rules.non_resource_rules[0].urls, ["/logs*"]);
        assert!(!rules.incomplete);
    }
}
