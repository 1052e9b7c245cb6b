//! Merges the groups and versions of several sources into the one list of aggregated discovery.
//!
//! Sources have ranks: a version that two sources serve is taken from the lower one, so that an API service replaces the
//! versions that this server serves itself. A group has the highest priority of its versions; groups of the same priority
//! are ordered by name, versions of the same priority as Kubernetes orders versions.

use super::{
    api_services::ApiServiceGroups,
    group::{Group, Version},
};
use pintle_machinery::{Value, compare_versions};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// The sort priority of a group and version: first for groups, second for versions of a group; higher comes first.
pub(super) type Priority = fn(&str, &str) -> (i64, i64);

/// A group of the merged list, its preferred version first.
pub(super) struct MergedGroup {
    pub(super) name: String,
    pub(super) versions: Vec<MergedVersion>,
}

/// A version of a merged group.
pub(super) struct MergedVersion {
    name: String,
    source: Source,
    priority: (i64, i64),
    pub(super) content: Content,
}

/// The rank of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    ApiServices,
    BuiltIn,
    Custom,
}

/// The resources of a version.
pub(super) enum Content {
    /// Resources of this server.
    Local(Version),
    /// The `APIVersionDiscovery` of another server.
    Remote(Arc<Value>),
}

/// Merges the groups of this server, built-in and custom, with the versions of other servers.
pub(super) fn merge(
    built_in: &[Arc<Group>],
    custom: &[Group],
    api_services: Option<&ApiServiceGroups>,
    priority: Priority,
) -> Vec<MergedGroup> {
    let mut merged = Merged::default();
    for version in api_services.map(ApiServiceGroups::remote).unwrap_or_default() {
        let Some(document) = &version.remote else { continue };
        merged.add(
            &version.group,
            MergedVersion {
                name: version.version.clone(),
                source: Source::ApiServices,
                priority: (version.group_priority, version.version_priority),
                content: Content::Remote(document.clone()),
            },
        );
    }
    let built_in = built_in.iter().map(|group| (&**group, Source::BuiltIn));
    for (group, source) in built_in.chain(custom.iter().map(|group| (group, Source::Custom))) {
        for version in &group.versions {
            merged.add(
                &group.name,
                MergedVersion {
                    name: version.name.clone(),
                    source,
                    priority: priority(&group.name, &version.name),
                    content: Content::Local(version.clone()),
                },
            );
        }
    }
    merged.finish()
}

#[derive(Default)]
struct Merged {
    groups: Vec<MergedGroup>,
    by_name: HashMap<String, usize>,
}

impl Merged {
    fn add(&mut self, group: &str, version: MergedVersion) {
        let at = *self.by_name.entry(group.to_owned()).or_insert_with(|| {
            self.groups.push(MergedGroup { name: group.to_owned(), versions: Vec::new() });
            self.groups.len() - 1
        });
        let Some(group) = self.groups.get_mut(at) else { return };
        match group.versions.iter_mut().find(|own| own.name == version.name) {
            Some(own) if version.source < own.source => *own = version,
            Some(_) => {}
            None => group.versions.push(version),
        }
    }

    fn finish(mut self) -> Vec<MergedGroup> {
        for group in &mut self.groups {
            group.versions.sort_by(|a, b| {
                let by_priority = Reverse(a.priority.1).cmp(&Reverse(b.priority.1));
                by_priority.then_with(|| compare_versions(&b.name, &a.name))
            });
        }
        let highest = |group: &MergedGroup| group.versions.iter().map(|version| version.priority.0).max();
        self.groups.sort_by_cached_key(|group| (Reverse(highest(group)), group.name.clone()));
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::{super::api_services::RegisteredVersion, *};
    use pintle_machinery::json;

    fn group(name: &str, versions: &[&str]) -> Group {
        let version = |name: &&str| Version { name: (*name).to_owned(), resources: Vec::new() };
        Group { name: name.to_owned(), versions: versions.iter().map(version).collect() }
    }

    fn remote(group: &str, version: &str, group_priority: i64, version_priority: i64) -> RegisteredVersion {
        RegisteredVersion {
            name: format!("{version}.{group}"),
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority,
            version_priority,
            remote: Some(Arc::new(json!({"version": version}))),
        }
    }

    fn priority(group: &str, version: &str) -> (i64, i64) {
        match (group, version) {
            ("own", _) => (20001, 0),
            ("apps", "v1") => (17800, 15),
            ("batch", "v1") => (17400, 15),
            _ => (1000, 100),
        }
    }

    #[test]
    fn sources_are_merged_by_rank_and_priority() {
        let check = |custom: &[Group], registered: Vec<RegisteredVersion>, expected: &str| {
            let built_in =
                [group("own", &["v1"]), group("apps", &["v1"]), group("batch", &["v1"])].map(Arc::new);
            let api_services = ApiServiceGroups::new("own", registered);
            let merged = merge(&built_in, custom, Some(&api_services), priority);
            let version = |version: &MergedVersion| match version.content {
                Content::Local(_) => version.name.clone(),
                Content::Remote(_) => format!("{}*", version.name),
            };
            let text = |group: &MergedGroup| {
                format!("{}:{}", group.name, group.versions.iter().map(version).collect::<Vec<_>>().join(","))
            };
            assert_eq!(merged.iter().map(text).collect::<Vec<_>>().join(" "), expected);
        };
        check(&[], vec![], "own:v1 apps:v1 batch:v1");
        // No priority that an API service can have precedes the first group.
        check(&[], vec![remote("z", "v1", 20000, 1)], "own:v1 z:v1* apps:v1 batch:v1");
        // The priority of a group is the highest one of its versions.
        check(
            &[],
            vec![remote("z", "v1", 1, 9), remote("z", "v2", 17500, 5)],
            "own:v1 apps:v1 z:v1*,v2* batch:v1",
        );
        // A replaced version has the priority of its API service only.
        check(&[], vec![remote("apps", "v1", 777, 5)], "own:v1 batch:v1 apps:v1*");
        check(
            &[group("shared", &["v1"]), group("other", &["v1"])],
            vec![remote("shared", "v2", 2000, 200)],
            "own:v1 apps:v1 batch:v1 shared:v2*,v1 other:v1",
        );
        // A definition never replaces a version of another source.
        check(
            &[group("apps", &["v1", "v2"]), group("shared", &["v1"])],
            vec![remote("shared", "v1", 1, 1)],
            "own:v1 apps:v2,v1 batch:v1 shared:v1*",
        );
        check(
            &[],
            vec![remote("b", "v1", 5, 5), remote("a", "v1beta1", 5, 5), remote("a", "v1", 5, 5)],
            "own:v1 apps:v1 batch:v1 a:v1*,v1beta1* b:v1*",
        );
    }
}
