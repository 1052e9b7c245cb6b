//! Checks privilege escalation: users may grant only the permissions that they have
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>).
//!
//! A rule is split into parts, one verb on one resource each, and a single rule of the user has to cover each part.

use crate::policy_rule::{PolicyRule, quoted_list};
use pintle_machinery::UserInfo;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The limit on the parts that the rules of one object are split into. Their number is the product of a rule's lists,
/// so that a small body can have very many.
const MAX_PARTS: usize = 1 << 20;
/// The limit on comparisons of a part with a rule for one object. Their number is the product of the parts and the
/// user's own rules, both of which the user can choose.
const MAX_COMPARISONS: usize = 1 << 23;
/// The limit on reported missing parts.
const MAX_MISSING: usize = 10_000;

/// The smallest permission that a rule can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str>, verb: &'a str },
    Path { path: &'a str, verb: &'a str },
}

/// The requested rules cannot be checked: they have too many parts, or would need too many comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rules allow more than {MAX_PARTS} combinations of verbs, groups, resources and names")]
pub struct TooManyParts;

/// The parts of the wanted rules that no own rule covers, each as a rule, in the order of the wanted rules.
///
/// # Errors
/// [`TooManyParts`].
pub fn missing(own: &[&PolicyRule], wanted: &[PolicyRule]) -> Result<Vec<PolicyRule>, TooManyParts> {
    Ok(missing_parts(own, wanted)?.into_iter().map(Part::to_rule).collect())
}

fn missing_parts<'a>(own: &[&PolicyRule], wanted: &'a [PolicyRule]) -> Result<Vec<Part<'a>>, TooManyParts> {
    let count = wanted.iter().fold(0_usize, |sum, rule| sum.saturating_add(count_parts(rule)));
    // A role that is granted by several bindings counts once.
    let mut seen = HashSet::new();
    let own: Vec<OwnRule<'_>> = own
        .iter()
        .filter(|rule| seen.insert(std::ptr::from_ref::<PolicyRule>(rule)))
        .map(|rule| OwnRule::new(rule))
        .collect();
    if count > MAX_PARTS || count.saturating_mul(own.len()) > MAX_COMPARISONS {
        return Err(TooManyParts);
    }
    let mut missing = Vec::new();
    for rule in wanted {
        for_each_part(rule, |part| {
            if missing.len() < MAX_MISSING && !own.iter().any(|own| part.is_covered_by(own)) {
                missing.push(part);
            }
        });
    }
    Ok(missing)
}

/// The message for a user that tries to grant permissions without having them; `None` when the user has all of them.
///
/// # Errors
/// [`TooManyParts`].
pub fn escalation(
    user: &UserInfo,
    own: &[&PolicyRule],
    wanted: &[PolicyRule],
) -> Result<Option<String>, TooManyParts> {
    let missing = missing_parts(own, wanted)?;
    if missing.is_empty() {
        return Ok(None);
    }
    let missing: BTreeSet<String> = compact(&missing).iter().map(ToString::to_string).collect();
    let missing: Vec<String> = missing.into_iter().collect();
    Ok(Some(format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        pintle_go_forms::quote(&user.name),
        quoted_list(&user.groups),
        missing.join("\n")
    )))
}

/// Joins the verbs on the same resource into one rule; parts on paths stay separate.
fn compact(parts: &[Part<'_>]) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let mut by_thing = HashMap::new();
    for part in parts {
        let Part::Resource { group, resource, name, verb } = *part else {
            rules.push(part.to_rule());
            continue;
        };
        let known = by_thing.entry((group, resource, name)).or_insert(rules.len());
        match rules.get_mut(*known) {
            Some(rule) => rule.verbs.push(verb.to_owned()),
            None => rules.push(part.to_rule()),
        }
    }
    rules
}

fn count_parts(rule: &PolicyRule) -> usize {
    let names = rule.resource_names.len().max(1);
    let things = rule.api_groups.len().saturating_mul(rule.resources.len()).saturating_mul(names);
    things.saturating_add(rule.non_resource_urls.len()).saturating_mul(rule.verbs.len())
}

fn for_each_part<'a>(rule: &'a PolicyRule, mut visit: impl FnMut(Part<'a>)) {
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                if rule.resource_names.is_empty() {
                    visit(Part::Resource { group, resource, name: None, verb });
                }
                for name in &rule.resource_names {
                    visit(Part::Resource { group, resource, name: Some(name), verb });
                }
            }
        }
    }
    for path in &rule.non_resource_urls {
        for verb in &rule.verbs {
            visit(Part::Path { path, verb });
        }
    }
}

impl Part<'_> {
    fn is_covered_by(self, own: &OwnRule<'_>) -> bool {
        match self {
            Part::Resource { group, resource, name, verb } => {
                own.verbs.has(verb)
                    && own.groups.has(group)
                    && own.covers_resource(resource)
                    && (own.names.is_empty() || name.is_some_and(|name| own.names.contains(name)))
            }
            Part::Path { path, verb } => own.verbs.has(verb) && own.names.is_empty() && own.covers_path(path),
        }
    }

    fn to_rule(self) -> PolicyRule {
        let one = |text: &str| vec![text.to_owned()];
        match self {
            Part::Resource { group, resource, name, verb } => PolicyRule {
                verbs: one(verb),
                api_groups: one(group),
                resources: one(resource),
                resource_names: name.map(one).unwrap_or_default(),
                non_resource_urls: Vec::new(),
            },
            Part::Path { path, verb } => {
                PolicyRule { verbs: one(verb), non_resource_urls: one(path), ..PolicyRule::default() }
            }
        }
    }
}

/// One of the user's own rules, indexed so that a comparison costs the same however long its lists are.
struct OwnRule<'a> {
    verbs: OneOf<'a>,
    groups: OneOf<'a>,
    resources: OneOf<'a>,
    /// The subresources of entries such as `*/scale`.
    subresources: HashSet<&'a str>,
    names: HashSet<&'a str>,
    paths: HashSet<&'a str>,
    /// The prefixes of paths that end in "*", sorted, without those that a shorter prefix covers.
    path_prefixes: Vec<&'a str>,
}

impl<'a> OwnRule<'a> {
    fn new(rule: &'a PolicyRule) -> OwnRule<'a> {
        let ended = rule.non_resource_urls.iter().filter(|path| path.ends_with('*'));
        let mut path_prefixes: Vec<&str> = ended.map(|path| path.trim_end_matches('*')).collect();
        path_prefixes.sort_unstable();
        path_prefixes.dedup_by(|path, shorter| path.starts_with(*shorter));
        OwnRule {
            verbs: OneOf::new(&rule.verbs),
            groups: OneOf::new(&rule.api_groups),
            resources: OneOf::new(&rule.resources),
            subresources: rule.resources.iter().filter_map(|own| own.strip_prefix("*/")).collect(),
            names: rule.resource_names.iter().map(String::as_str).collect(),
            paths: rule.non_resource_urls.iter().map(String::as_str).collect(),
            path_prefixes,
        }
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        self.resources.has(wanted)
            || wanted.split_once('/').is_some_and(|(_, subresource)| self.subresources.contains(subresource))
    }

    fn covers_path(&self, wanted: &str) -> bool {
        // Only the last prefix that is not greater than the path can be a prefix of it.
        let at = self.path_prefixes.partition_point(|prefix| *prefix <= wanted);
        let before = at.checked_sub(1).and_then(|at| self.path_prefixes.get(at));
        self.paths.contains(wanted) || before.is_some_and(|prefix| wanted.starts_with(prefix))
    }
}

/// A set of texts, or any text.
struct OneOf<'a> {
    all: bool,
    texts: HashSet<&'a str>,
}

impl<'a> OneOf<'a> {
    fn new(texts: &'a [String]) -> OneOf<'a> {
        OneOf { all: texts.iter().any(|text| text == "*"), texts: texts.iter().map(String::as_str).collect() }
    }

    fn has(&self, text: &str) -> bool {
        self.all || self.texts.contains(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authz::Attributes;
    use pintle_machinery::{Value, json};
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde::Deserialize;

    fn rules(rules: Value) -> Vec<PolicyRule> {
        Vec::deserialize(&rules).unwrap()
    }

    fn check(own: Value, wanted: Value, expected: &[&str]) {
        let (own, wanted) = (rules(own), rules(wanted));
        let user = UserInfo {
            name: "u".to_owned(),
            groups: vec!["g".to_owned(), "h".to_owned()],
            ..UserInfo::default()
        };
        let message = escalation(&user, &own.iter().collect::<Vec<_>>(), &wanted).unwrap();
        let head =
            "user \"u\" (groups=[\"g\" \"h\"]) is attempting to grant RBAC permissions not currently held:\n";
        let expected = (!expected.is_empty()).then(|| format!("{head}{}", expected.join("\n")));
        assert_eq!(message, expected);
    }

    #[test]
    fn nobody_gives_what_they_do_not_have() {
        let own = json!([
            {"apiGroups": [""], "resources": ["pods", "services/*"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["*"]},
            {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]},
            {"nonResourceURLs": ["/healthz/*"], "verbs": ["get"]},
        ]);
        check(
            own.clone(),
            json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}]),
            &[],
        );
        check(own.clone(), json!([{"apiGroups": ["apps"], "resources": ["x/scale"], "verbs": ["get"]}]), &[]);
        check(
            own.clone(),
            json!([{"nonResourceURLs": ["/healthz/etcd", "/healthz/*"], "verbs": ["get"]}]),
            &[],
        );
        check(own.clone(), json!([{"apiGroups": [""], "resources": ["secrets"]}]), &[]);
        check(
            own.clone(),
            json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete", "create", "delete"]}]),
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create" "delete"]}"#],
        );
        check(
            own.clone(),
            json!([{"apiGroups": ["", "batch"], "resources": ["pods", "services/status"], "verbs": ["get"]}]),
            &[
                r#"{APIGroups:[""], Resources:["services/status"], Verbs:["get"]}"#,
                r#"{APIGroups:["batch"], Resources:["pods"], Verbs:["get"]}"#,
                r#"{APIGroups:["batch"], Resources:["services/status"], Verbs:["get"]}"#,
            ],
        );
        check(
            own.clone(),
            json!([{"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web", "db"], "verbs": ["get"]},
                   {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]),
            &[
                r#"{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["db"], Verbs:["get"]}"#,
                r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}"#,
            ],
        );
        check(
            own.clone(),
            json!([{"nonResourceURLs": ["/metrics", "/healthz/a"], "verbs": ["get", "post"]}]),
            &[
                r#"{NonResourceURLs:["/healthz/a"], Verbs:["post"]}"#,
                r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/metrics"], Verbs:["post"]}"#,
            ],
        );
        check(
            own,
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
            &[r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#],
        );
        check(
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
            json!([{"nonResourceURLs": ["/"], "verbs": ["get"]}]),
            &[r#"{NonResourceURLs:["/"], Verbs:["get"]}"#],
        );
    }

    #[test]
    fn what_would_take_for_ever_is_refused() {
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let rule = json!([{"apiGroups": many, "resources": many, "resourceNames": many, "verbs": many}]);
        assert_eq!(missing(&[], &rules(rule)), Err(TooManyParts));
    }

    /// The parts and the rules are each within bounds, but not their product.
    #[test]
    fn comparisons_are_bounded() {
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let pods = |count: usize| {
            rules(
                json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": names(count), "verbs": ["get"]}]),
            )
        };
        let own: Vec<PolicyRule> = (0..1000).flat_map(|_| pods(1)).collect();
        let own: Vec<&PolicyRule> = own.iter().collect();
        assert_eq!(missing(&own, &pods(10_000)), Err(TooManyParts));
        let begun = std::time::Instant::now();
        assert_eq!(missing(&own, &pods(8000)).unwrap().len(), 7999);
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
        // One role that a thousand bindings grant counts once.
        let same = vec![own[0]; 1000];
        assert_eq!(missing(&same, &pods(10_000)).unwrap().len(), 9999);
        // The number of reported parts is bounded.
        assert_eq!(missing(&same, &pods(100_000)).unwrap().len(), MAX_MISSING);
    }

    fn rule() -> impl Strategy<Value = PolicyRule> {
        let list = |of: &'static [&'static str]| vec(select(of).prop_map(str::to_owned), 0..3);
        let lists = (
            list(&["get", "list", "*"]),
            list(&["", "apps", "*"]),
            list(&["pods", "pods/log", "*/log", "x/log", "*"]),
            list(&["a", "b"]),
            list(&["/a", "/a/b", "/a/*", "*"]),
        );
        lists.prop_map(|(verbs, api_groups, resources, resource_names, non_resource_urls)| PolicyRule {
            verbs,
            api_groups,
            resources,
            resource_names,
            non_resource_urls,
        })
    }

    proptest! {
        /// A user that may grant rules has every permission in them.
        #[test]
        fn what_is_covered_is_allowed(own in vec(rule(), 0..4), wanted in vec(rule(), 0..3)) {
            let lacking = missing(&own.iter().collect::<Vec<_>>(), &wanted).unwrap();
            if lacking.is_empty() {
                let user = UserInfo::default();
                for verb in ["get", "list", "delete"] {
                    for (group, resource) in [("", "pods"), ("", "x"), ("apps", "pods"), ("other", "x")] {
                        for (subresource, name) in [("", ""), ("", "a"), ("log", "a"), ("exec", "b")] {
                            let asked = Attributes { group, resource, subresource, name, ..Attributes::of(&user, verb) };
                            let wants = wanted.iter().any(|rule| rule.allows(&asked));
                            prop_assert!(!wants || own.iter().any(|rule| rule.allows(&asked)), "{verb} {group} {resource} {subresource} {name}");
                        }
                    }
                    for path in ["/a", "/a/b", "/a/b/c", "/d"] {
                        let asked = Attributes { path, is_resource_request: false, ..Attributes::of(&user, verb) };
                        let wants = wanted.iter().any(|rule| rule.allows(&asked));
                        prop_assert!(!wants || own.iter().any(|rule| rule.allows(&asked)), "{verb} {path}");
                    }
                }
            }
            // Together with the missing rules, everything is covered.
            let both: Vec<&PolicyRule> = own.iter().chain(&lacking).collect();
            prop_assert_eq!(missing(&both, &wanted).unwrap(), vec![]);
        }
    }
}
