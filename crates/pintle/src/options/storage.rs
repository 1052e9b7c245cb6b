//! The storage options of single resources: their etcd cluster, and their watch cache.

use pintle_apiserver::registry::StorageFactory;
use pintle_cacher::ReadSource;
use pintle_machinery::GroupResource;
use std::{collections::HashMap, str::FromStr};

/// The watch cache of resources (`--watch-cache`, `--watch-cache-sizes`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchCache {
    /// Whether it is enabled at all.
    pub enabled: bool,
    /// The configured sizes. Only zero has an effect: it disables the resource's watch cache.
    pub sizes: HashMap<GroupResource, u64>,
}

impl Default for WatchCache {
    fn default() -> WatchCache {
        WatchCache { enabled: true, sizes: HashMap::new() }
    }
}

impl WatchCache {
    /// Adds `resource[.group]#size,…`.
    ///
    /// # Errors
    /// When the text is malformed, in kube-apiserver's words.
    pub fn add_sizes(&mut self, text: &str) -> Result<(), String> {
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let mut parts = item.split('#');
            let (Some(resource), Some(size), None) = (parts.next(), parts.next(), parts.next()) else {
                return Err(format!("invalid value of watch cache size: {item}"));
            };
            let Ok(size) = size.parse::<i64>() else {
                return Err(format!("invalid size of watch cache size: {item}"));
            };
            let Ok(size) = u64::try_from(size) else {
                return Err(format!("watch cache size cannot be negative: {item}"));
            };
            let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
            self.sizes.insert(GroupResource::new(group, resource), size);
        }
        Ok(())
    }

    /// Sets the sources of reads accordingly.
    pub(crate) fn apply(&self, mut factory: StorageFactory) -> StorageFactory {
        if !self.enabled {
            return factory.read_source(ReadSource::Storage);
        }
        // Kube-apiserver has no watch cache for events. Its effects on clients are reproduced, though the cache serves
        // the reads.
        factory = factory
            .resource_read_source(stored_as(GroupResource::new("", "events")), ReadSource::NewestOfCache);
        // A size of zero takes precedence over another size of the same objects under another name.
        let mut sizes: Vec<_> = self.sizes.iter().collect();
        sizes.sort_by_key(|(_, size)| std::cmp::Reverse(**size));
        for (resource, size) in sizes {
            let read_source = match size {
                0 => ReadSource::Storage,
                _ => {
                    tracing::warn!(
                        "Dropping watch-cache-size for {resource} - watchCache size is now dynamic"
                    );
                    ReadSource::Cache
                }
            };
            factory = factory.resource_read_source(stored_as(resource.clone()), read_source);
        }
        factory
    }
}

/// A resource that is stored in an etcd cluster of its own (`--etcd-servers-overrides`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdServersOverride {
    /// The resource; `*` stands for all resources of the group.
    pub resource: GroupResource,
    /// The URLs of its etcd servers.
    pub servers: Vec<String>,
}

/// A list of overrides in the flag's format: `group/resource#server;server,…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdServersOverrides(pub Vec<EtcdServersOverride>);

impl FromStr for EtcdServersOverrides {
    type Err = String;

    fn from_str(text: &str) -> Result<EtcdServersOverrides, String> {
        let overrides = text.split(',').map(|item| {
            let (resource, servers) = exactly_two(item, '#')?;
            let (group, resource) = exactly_two(resource, '/')?;
            let servers: Vec<String> = servers.split(';').map(str::to_owned).collect();
            let is_whole = servers.iter().all(|server| !server.is_empty());
            is_whole.then(|| EtcdServersOverride { resource: GroupResource::new(group, resource), servers })
        });
        overrides.collect::<Option<_>>().map(EtcdServersOverrides).ok_or_else(|| {
            "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, \
             semicolon separated"
                .to_owned()
        })
    }
}

fn exactly_two(text: &str, separator: char) -> Option<(&str, &str)> {
    let (first, second) = text.split_once(separator)?;
    (!second.contains(separator)).then_some((first, second))
}

impl EtcdServersOverrides {
    /// The distinct lists of servers, in the order of their first occurrence; lists that differ in order only are
    /// equal.
    pub(crate) fn server_lists(&self) -> Vec<&[String]> {
        let mut lists: Vec<&[String]> = Vec::new();
        for item in &self.0 {
            if !lists.iter().any(|list| sorted(list) == sorted(&item.servers)) {
                lists.push(&item.servers);
            }
        }
        lists
    }
}

/// The servers in an order that does not depend on the list's.
pub(crate) fn sorted(servers: &[String]) -> Vec<&String> {
    let mut servers: Vec<_> = servers.iter().collect();
    servers.sort();
    servers
}

/// The group and name under which a resource's objects are stored.
fn stored_as(resource: GroupResource) -> GroupResource {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("events.k8s.io", "events") => GroupResource::new("", "events"),
        _ => resource,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_cache_sizes_are_read_as_the_reference_reads_them() {
        let check = |text: &str, expected: Result<&[(&str, &str, u64)], &str>| {
            let mut cache = WatchCache::default();
            let read = cache.add_sizes(text).map(|()| cache.sizes);
            let expected = expected.map(|sizes| {
                sizes
                    .iter()
                    .map(|(group, resource, size)| (GroupResource::new(*group, *resource), *size))
                    .collect::<HashMap<_, _>>()
            });
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        };
        check("", Ok(&[]));
        check("pods#0", Ok(&[("", "pods", 0)]));
        check("pods#100,deployments.apps#0", Ok(&[("", "pods", 100), ("apps", "deployments", 0)]));
        check("leases.coordination.k8s.io#+1", Ok(&[("coordination.k8s.io", "leases", 1)]));
        check("pods", Err("invalid value of watch cache size: pods"));
        check("pods#1#2", Err("invalid value of watch cache size: pods#1#2"));
        check("pods#many", Err("invalid size of watch cache size: pods#many"));
        check("pods#", Err("invalid size of watch cache size: pods#"));
        check("pods#-1", Err("watch cache size cannot be negative: pods#-1"));
    }

    #[test]
    fn overrides_of_servers_are_read_as_the_reference_reads_them() {
        let invalid = "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are \
                       URLs, semicolon separated";
        let check = |text: &str, expected: Option<&[(&str, &str, &[&str])]>| {
            let expected = expected.map(|items| {
                items.iter().map(|(group, resource, servers)| EtcdServersOverride {
                    resource: GroupResource::new(*group, *resource),
                    servers: servers.iter().map(|server| (*server).to_owned()).collect(),
                })
            });
            let expected =
                expected.map(|items| EtcdServersOverrides(items.collect())).ok_or(invalid.to_owned());
            assert_eq!(text.parse::<EtcdServersOverrides>(), expected, "{text}");
        };
        check("/pods#http://a:1;http://b:2", Some(&[("", "pods", &["http://a:1", "http://b:2"])]));
        check(
            "/events#http://a:1,apps/deployments#https://b:2",
            Some(&[("", "events", &["http://a:1"]), ("apps", "deployments", &["https://b:2"])]),
        );
        for text in
            ["pods#http://a:1", "a/b/c#http://a:1", "/pods", "/pods#http://a:1#x", "/pods#", "/pods#a;"]
        {
            check(text, None);
        }
    }

    #[test]
    fn lists_of_the_same_servers_are_one() {
        let overrides: EtcdServersOverrides = "/a#x;y,/b#y;x,/c#z,/d#x".parse().unwrap();
        let lists = overrides.server_lists();
        assert_eq!(lists, [&["x".to_owned(), "y".to_owned()][..], &["z".to_owned()], &["x".to_owned()]]);
    }
}
