//! The documents of OpenAPI 3 that other servers have.

use crate::api_services::Snapshot;
use pintle_machinery::{GroupVersion, Value, ValueExt, codec::json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// The maximum length of a URL in bytes.
const MAX_URL: usize = 1024;

/// The URLs in the index of one server, by key.
#[derive(Debug, Default)]
pub(super) struct Entries(BTreeMap<String, String>);

/// Reads an index. Entries whose URL is not that of their key are left out, since clients follow the URLs.
///
/// # Errors
/// The reason why the index is unusable.
pub(super) fn entries(bytes: &[u8]) -> Result<Entries, String> {
    let index = json::decode_any_body(bytes).map_err(|error| error.to_string())?;
    let Some(Value::Object(paths)) = index.field("paths") else {
        return Err("the index has no paths".to_owned());
    };
    let mut entries = BTreeMap::new();
    for (key, entry) in paths {
        let url = entry.str_at("serverRelativeURL");
        let rest = url.strip_prefix("/openapi/v3/").and_then(|rest| rest.strip_prefix(key.as_str()));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('?')) && url.len() <= MAX_URL {
            entries.insert(key.to_string(), url.to_owned());
        }
    }
    Ok(Entries(entries))
}

impl Entries {
    /// The entries of a group and version, and of the group.
    pub(super) fn of(&self, group_version: &GroupVersion) -> BTreeMap<String, String> {
        let GroupVersion { group, version } = group_version;
        let keys = match group.as_str() {
            "" => vec![format!("api/{version}")],
            group => vec![format!("apis/{group}/{version}"), format!("apis/{group}")],
        };
        keys.into_iter()
            .filter_map(|key| self.0.get_key_value(&key))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    }
}

/// The entries of all servers.
#[derive(Debug, Default)]
pub(super) struct RemoteIndex(BTreeMap<String, (String, Arc<str>)>);

impl RemoteIndex {
    /// Collects the entries of API services, by name. The document of a group is that of this server if this server has a
    /// version of the group.
    pub(super) fn new(
        snapshot: &Snapshot,
        indices: &HashMap<Arc<str>, BTreeMap<String, String>>,
    ) -> RemoteIndex {
        let local: HashSet<&str> = snapshot
            .values()
            .filter(|service| service.backend.is_none())
            .map(|service| service.group_version.group.as_str())
            .collect();
        let mut all = BTreeMap::new();
        for service in snapshot.values() {
            for (key, url) in indices.get(&service.name).into_iter().flatten() {
                let group = key.strip_prefix("apis/").unwrap_or(key);
                if !local.contains(group) {
                    all.entry(key.clone()).or_insert_with(|| (url.clone(), service.name.clone()));
                }
            }
        }
        RemoteIndex(all)
    }

    /// The name of the API service whose server has the document.
    pub(super) fn owner(&self, key: &str) -> Option<Arc<str>> {
        self.0.get(key).map(|(_, owner)| owner.clone())
    }

    /// The URL of each document.
    pub(super) fn urls(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(key, (url, _))| (key.clone(), url.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn only_entries_with_the_url_of_their_key_are_taken() {
        let index = json!({"paths": {
            "apis/a/v1": {"serverRelativeURL": "/openapi/v3/apis/a/v1?hash=1"},
            "apis/a": {"serverRelativeURL": "/openapi/v3/apis/a"},
            "apis/b/v1": {"serverRelativeURL": "//evil.example.com/openapi/v3/apis/b/v1"},
            "apis/c/v1": {"serverRelativeURL": "/api/v1/secrets"},
            "apis/d/v1": {"serverRelativeURL": "/openapi/v3/apis/d/v1beta1"},
            "apis/e/v1": {"serverRelativeURL": 7},
            "apis/f/v1": 7,
            "apis/g/v1": {"serverRelativeURL": format!("/openapi/v3/apis/g/v1?hash={}", "1".repeat(MAX_URL))},
        }});
        let found = entries(index.to_string().as_bytes()).unwrap();
        assert_eq!(found.0.keys().collect::<Vec<_>>(), ["apis/a", "apis/a/v1"]);
        let own = |group: &str, version: &str| {
            found.of(&GroupVersion::new(group, version)).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(own("a", "v1"), ["apis/a", "apis/a/v1"]);
        assert_eq!(own("a", "v2"), ["apis/a"]);
        assert!(own("b", "v1").is_empty() && own("", "v1").is_empty());
        for unusable in ["", "null", "{}", r#"{"paths":[]}"#, "<html>"] {
            assert!(entries(unusable.as_bytes()).is_err(), "{unusable}");
        }
    }
}
