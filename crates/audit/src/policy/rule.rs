//! The rules, and their matching of requests.

use super::attributes::Attributes;
use crate::{Level, StageSet};

/// The rules of a policy, in order, with the omissions that hold for all of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rules {
    pub(super) list: Vec<Rule>,
    pub(super) omit_stages: StageSet,
    pub(super) omit_managed_fields: bool,
}

/// A rule. A request matches if it matches every list that is not empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    pub(super) level: Level,
    pub(super) users: Vec<String>,
    pub(super) user_groups: Vec<String>,
    pub(super) verbs: Vec<String>,
    pub(super) resources: Vec<GroupResources>,
    /// "" stands for cluster-scoped resources.
    pub(super) namespaces: Vec<String>,
    pub(super) non_resource_urls: Vec<String>,
    pub(super) omit_stages: StageSet,
    /// `None` inherits the policy's setting.
    pub(super) omit_managed_fields: Option<bool>,
}

/// Resources of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupResources {
    /// `*` is every group.
    pub(super) group: String,
    /// `resource`, `resource/subresource`, or either with `*`. An empty list matches all.
    pub(super) resources: Vec<String>,
    /// An empty list matches all.
    pub(super) resource_names: Vec<String>,
}

impl Rule {
    pub(super) fn matches(&self, attributes: &Attributes<'_>) -> bool {
        if !self.users.is_empty() && !attributes.user.is_some_and(|user| has(&self.users, &user.name)) {
            return false;
        }
        if !self.user_groups.is_empty()
            && !attributes
                .user
                .is_some_and(|user| user.groups.iter().any(|group| has(&self.user_groups, group)))
        {
            return false;
        }
        if !self.verbs.is_empty() && !has(&self.verbs, attributes.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return self.matches_resource(attributes);
        }
        if !self.non_resource_urls.is_empty() {
            return !attributes.is_resource_request
                && self.non_resource_urls.iter().any(|pattern| path_matches(attributes.path, pattern));
        }
        true
    }

    fn matches_resource(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_resource_request
            && (self.namespaces.is_empty() || has(&self.namespaces, attributes.namespace))
            && (self.resources.is_empty()
                || self.resources.iter().any(|resources| resources.match_request(attributes)))
    }
}

impl GroupResources {
    fn match_request(&self, attributes: &Attributes<'_>) -> bool {
        if self.group != "*" && self.group != attributes.api_group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        (self.resource_names.is_empty() || has(&self.resource_names, attributes.name))
            && self.resources.iter().any(|pattern| resource_matches(pattern, attributes))
    }
}

fn resource_matches(pattern: &str, attributes: &Attributes<'_>) -> bool {
    if pattern == "*" {
        return true;
    }
    let (resource, subresource) = match pattern.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (pattern, None),
    };
    match subresource {
        // All subresources of a resource, and the resource itself.
        Some("*") if resource == attributes.resource => true,
        Some(wanted) if !attributes.subresource.is_empty() => {
            wanted == attributes.subresource && (resource == "*" || resource == attributes.resource)
        }
        Some(_) => false,
        None => attributes.subresource.is_empty() && resource == attributes.resource,
    }
}

fn path_matches(path: &str, pattern: &str) -> bool {
    pattern == "*"
        || pattern == path
        || pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*'))
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|own| own == value)
}
