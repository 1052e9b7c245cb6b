//! The registered API services, as discovery lists them.

use pintle_machinery::{Value, compare_versions};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// The source of registered API services.
pub trait ApiServiceSource: Send + Sync {
    /// The current API services. Returns the same pointer until there is a change.
    fn current(&self) -> Arc<ApiServiceGroups>;
}

/// The API service of one group and version.
#[derive(Debug, Clone)]
pub struct RegisteredVersion {
    /// The name of the API service.
    pub name: String,
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// `spec.groupPriorityMinimum`.
    pub group_priority: i64,
    /// `spec.versionPriority`.
    pub version_priority: i64,
    /// The `APIVersionDiscovery` of a version that another server serves; `None` for a version that this server serves.
    pub remote: Option<Arc<Value>>,
}

/// The registered API services, and the order in which discovery lists them.
#[derive(Debug, Default)]
pub struct ApiServiceGroups {
    first: String,
    remote: Vec<RegisteredVersion>,
    groups: Vec<RegisteredGroup>,
    by_name: HashMap<String, usize>,
}

/// The registered versions of a group, the preferred one first.
#[derive(Debug)]
pub(super) struct RegisteredGroup {
    pub(super) name: String,
    pub(super) versions: Vec<String>,
}

impl ApiServiceGroups {
    /// Orders API services by their priorities: groups by the highest priority in the group, then by the name of that
    /// API service; versions by priority, then as Kubernetes orders versions. The group `first`, which needs no API
    /// service, precedes all others.
    pub fn new(first: impl Into<String>, mut registered: Vec<RegisteredVersion>) -> ApiServiceGroups {
        registered.sort_by(|a, b| {
            Reverse(a.group_priority).cmp(&Reverse(b.group_priority)).then_with(|| a.name.cmp(&b.name))
        });
        let mut groups: Vec<(String, Vec<&RegisteredVersion>)> = Vec::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for version in &registered {
            let at = *by_name.entry(version.group.clone()).or_insert_with(|| {
                groups.push((version.group.clone(), Vec::new()));
                groups.len() - 1
            });
            if let Some((_, versions)) = groups.get_mut(at) {
                versions.push(version);
            }
        }
        let groups = groups
            .into_iter()
            .map(|(name, mut versions)| {
                versions.sort_by(|a, b| {
                    let by_priority = Reverse(a.version_priority).cmp(&Reverse(b.version_priority));
                    by_priority.then_with(|| compare_versions(&b.version, &a.version))
                });
                let versions = versions.into_iter().map(|version| version.version.clone()).collect();
                RegisteredGroup { name, versions }
            })
            .collect();
        registered.retain(|version| version.remote.is_some());
        ApiServiceGroups { first: first.into(), remote: registered, groups, by_name }
    }

    /// The group that precedes all others.
    pub(super) fn first(&self) -> &str {
        &self.first
    }

    /// The versions that other servers serve.
    pub(super) fn remote(&self) -> &[RegisteredVersion] {
        &self.remote
    }

    /// The groups in order, with the core group.
    pub(super) fn groups(&self) -> &[RegisteredGroup] {
        &self.groups
    }

    /// The group with a name.
    pub(super) fn group(&self, name: &str) -> Option<&RegisteredGroup> {
        self.groups.get(*self.by_name.get(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_the_highest_priority_and_versions_their_own() {
        let registered = |group: &str, version: &str, group_priority, version_priority| RegisteredVersion {
            name: format!("{version}.{group}"),
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority,
            version_priority,
            remote: None,
        };
        let check = |registered: &[RegisteredVersion], expected: &str| {
            let groups = ApiServiceGroups::new("own", registered.to_vec());
            let text = |group: &RegisteredGroup| format!("{}:{}", group.name, group.versions.join(","));
            assert_eq!(groups.groups().iter().map(text).collect::<Vec<_>>().join(" "), expected);
            for group in groups.groups() {
                assert_eq!(groups.group(&group.name).map(text), Some(text(group)));
            }
            assert!(groups.group("missing").is_none());
        };
        check(&[], "");
        check(
            &[
                registered("low", "v1", 100, 10),
                registered("high", "v1", 50, 1),
                registered("high", "v1beta1", 19000, 99),
                registered("middle", "v1", 18000, 1),
            ],
            "high:v1beta1,v1 middle:v1 low:v1",
        );
        // Groups of the same priority are ordered by the names of API services, which begin with the version.
        check(
            &[registered("b", "v1", 1, 1), registered("a", "v2", 1, 1), registered("c", "v1", 1, 1)],
            "b:v1 c:v1 a:v2",
        );
        check(
            &[
                registered("a", "v1beta1", 1, 7),
                registered("a", "v2", 1, 7),
                registered("a", "v10", 1, 7),
                registered("a", "odd", 1, 8),
            ],
            "a:odd,v10,v2,v1beta1",
        );
    }
}
