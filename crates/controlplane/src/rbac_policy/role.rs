//! The desired state of a role.

use super::object::object;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Map, Value, ValueExt, json};

/// The desired state of a role.
pub(super) struct Role {
    pub(super) name: &'static str,
    /// "" is a cluster role.
    pub(super) namespace: &'static str,
    pub(super) rules: &'static [Rule],
    /// An additional label, besides those that all roles have.
    pub(super) label: Option<&'static str>,
    /// The label of the roles that a controller aggregates into this one.
    pub(super) aggregates: Option<&'static str>,
    /// The gate without which the role is not created.
    pub(super) gate: Option<Gate>,
}

/// A rule, with its lists as words separated by spaces.
pub(super) struct Rule {
    pub(super) verbs: &'static str,
    /// `core` is the group without a name.
    pub(super) groups: &'static str,
    pub(super) resources: &'static str,
    pub(super) names: &'static str,
    pub(super) urls: &'static str,
    /// Paths that open gates add.
    pub(super) gated_urls: &'static [(Gate, &'static str)],
    /// The gate without which the role does not have the rule.
    pub(super) gate: Option<Gate>,
}

/// Verbs on resources of groups.
pub(super) const fn on(verbs: &'static str, groups: &'static str, resources: &'static str) -> Rule {
    Rule { verbs, groups, resources, names: "", urls: "", gated_urls: &[], gate: None }
}

/// Verbs on non-resource paths.
pub(super) const fn at(verbs: &'static str, urls: &'static str) -> Rule {
    Rule { verbs, groups: "", resources: "", names: "", urls, gated_urls: &[], gate: None }
}

impl Rule {
    /// Restricts the rule to objects with these names.
    pub(super) const fn named(self, names: &'static str) -> Rule {
        Rule { names, ..self }
    }

    /// Adds paths that are behind gates.
    pub(super) const fn with_urls(self, gated_urls: &'static [(Gate, &'static str)]) -> Rule {
        Rule { gated_urls, ..self }
    }

    /// Puts the rule behind a gate.
    pub(super) const fn behind(self, gate: Gate) -> Rule {
        Rule { gate: Some(gate), ..self }
    }

    pub(super) fn object(&self) -> Value {
        let groups = self.groups.split(' ').filter(|group| !group.is_empty());
        let groups: Vec<&str> = groups.map(|group| if group == "core" { "" } else { group }).collect();
        let words = |text: &'static str| text.split(' ').filter(|word| !word.is_empty()).collect();
        let mut urls: Vec<&str> = words(self.urls);
        urls.extend(self.gated_urls.iter().filter(|(gate, _)| enabled(*gate)).map(|(_, url)| *url));
        urls.sort_unstable();
        let lists: [(&str, Vec<&str>); 5] = [
            ("verbs", words(self.verbs)),
            ("apiGroups", groups),
            ("resources", words(self.resources)),
            ("resourceNames", words(self.names)),
            ("nonResourceURLs", urls),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        Value::Object(lists.map(|(name, list)| (name.to_owned(), json!(list))).collect())
    }
}

impl Role {
    pub(super) const fn new(name: &'static str, rules: &'static [Rule]) -> Role {
        Role { name, namespace: "", rules, label: None, aggregates: None, gate: None }
    }

    pub(super) const fn within(self, namespace: &'static str) -> Role {
        Role { namespace, ..self }
    }

    pub(super) const fn labelled(self, label: &'static str) -> Role {
        Role { label: Some(label), ..self }
    }

    /// Puts the role behind a gate.
    pub(super) const fn behind(self, gate: Gate) -> Role {
        Role { gate: Some(gate), ..self }
    }

    /// Whether the role belongs to the server: its gate is open.
    pub(super) fn is_in_force(&self) -> bool {
        self.gate.is_none_or(enabled)
    }

    pub(super) const fn aggregating(self, label: &'static str) -> Role {
        Role { aggregates: Some(label), ..self }
    }

    pub(super) fn object(&self) -> Value {
        let kind = if self.namespace.is_empty() { "ClusterRole" } else { "Role" };
        let mut role = object(kind, self.namespace, self.name);
        if let Some(labels) = role.at_mut("metadata.labels").and_then(Value::as_object_mut) {
            labels.extend(self.label.map(|label| (label.to_owned(), "true".into())));
        }
        if !self.rules.is_empty() {
            let rules = self.rules.iter().filter(|rule| rule.gate.is_none_or(enabled));
            role.set("rules", rules.map(Rule::object).collect::<Value>());
        }
        if let Some(label) = self.aggregates {
            let labels: Map = [(label.to_owned(), "true".into())].into_iter().collect();
            role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": labels}]}));
        }
        role
    }
}
