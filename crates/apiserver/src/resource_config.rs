//! Decides which groups, versions and resources are enabled: the defaults, changed by `--runtime-config`
//! (<https://kubernetes.io/docs/tasks/administer-cluster/enable-disable-api/>).
//!
//! A setting for a resource takes precedence over one for its version, and that over the keys for many versions at once
//! (`api/all`, then `api/ga`, `api/beta`, `api/alpha`).

use pintle_go_forms::{parse_bool, quote};
use pintle_machinery::{GroupVersion, GroupVersionResource};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The value of `--runtime-config`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfig(BTreeMap<String, String>);

/// The reason why a [`RuntimeConfig`] is invalid, in kube-apiserver's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeConfigError {
    /// Everything is disabled, and nothing enabled.
    #[error("invalid runtime-config with only api/all=false")]
    NothingEnabled,
    /// A key names no version.
    #[error("runtime-config invalid key {0}")]
    Key(String),
    /// Keys name versions of groups that do not exist.
    #[error("unknown api groups {}", .0.join(","))]
    UnknownGroups(Vec<String>),
    /// A key for many versions has another value than `true` and `false`.
    #[error("invalid value {key}={value}")]
    ValueOfMany {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A key names a version that does not exist.
    #[error("group version {0} that has not been registered")]
    NotRegistered(GroupVersion),
    /// A key for a version or a resource has no boolean value.
    #[error("invalid value of {key}: {value}, err: strconv.ParseBool: parsing {}: invalid syntax", quote(.value))]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A key names a resource that is not in lower case.
    #[error(
        "invalid key {key}: group/version/resource and resource is always lowercase plural, not {}",
        quote(.resource)
    )]
    Resource {
        /// The key.
        key: String,
        /// The name of the resource.
        resource: String,
    },
}

/// A key for many versions, and the predicate that selects them.
type Word = (&'static str, fn(&str) -> bool);

/// The keys for many versions, in the order in which they are applied.
const WORDS: [Word; 4] = [
    ("api/all", |_| true),
    ("api/ga", |version| is_version(version, "")),
    ("api/beta", |version| is_version(version, "beta")),
    ("api/alpha", |version| is_version(version, "alpha")),
];

impl RuntimeConfig {
    /// Adds `key=value,key=value`; later pairs replace earlier ones. A key without `=` has an empty value.
    ///
    /// The core version may be written as `v1` and as `api/v1`. A resource name after these is ignored: the whole
    /// version is meant. `api/legacy` has no effect.
    pub fn add(&mut self, text: &str) {
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (key.trim(), value.trim());
            let version = key.strip_prefix("api/").unwrap_or(key);
            let key = match key {
                "api/legacy" => continue,
                _ if version == "v1" || version.starts_with("v1/") => "/v1",
                key => key,
            };
            self.0.insert(key.to_owned(), value.to_owned());
        }
    }

    /// The literal value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The keys that name a version, each with its resource if it names one, and its value.
    fn names(&self) -> impl Iterator<Item = (&str, Result<Name, ()>, &str)> {
        let is_word = |key: &str| WORDS.iter().any(|(word, _)| *word == key);
        let pairs = self.0.iter().filter(move |(key, _)| !is_word(key));
        pairs.map(|(key, value)| (key.as_str(), Name::parse(key).ok_or(()), value.as_str()))
    }

    /// Checks what does not depend on the registered versions.
    ///
    /// # Errors
    /// When keys are malformed or groups unknown.
    pub fn validate(&self, is_group_registered: impl Fn(&str) -> bool) -> Result<(), RuntimeConfigError> {
        if self.0.len() == 1 && self.0.get("api/all").is_some_and(|value| value == "false") {
            return Err(RuntimeConfigError::NothingEnabled);
        }
        let mut unknown = BTreeSet::new();
        for (key, name, _) in self.names() {
            let Ok(Name { version, .. }) = name else {
                return Err(RuntimeConfigError::Key(key.to_owned()));
            };
            if !is_group_registered(&version.group) {
                unknown.insert(version.to_string());
            }
        }
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(RuntimeConfigError::UnknownGroups(unknown.into_iter().collect())),
        }
    }

    /// Whether a version, or a resource in it, is enabled by name.
    pub fn names_version(&self, version: &GroupVersion) -> bool {
        self.names().any(|(_, name, value)| {
            name.is_ok_and(|name| name.version == *version) && boolean(value).unwrap_or_default()
        })
    }

    /// Whether a resource is enabled by name.
    pub fn names_resource(&self, resource: &GroupVersionResource) -> bool {
        let is_named = |name: Name| {
            name.version.group == resource.group
                && name.version.version == resource.version
                && name.resource.as_deref() == Some(&resource.resource)
        };
        self.names().any(|(_, name, value)| name.is_ok_and(is_named) && boolean(value).unwrap_or_default())
    }
}

impl std::str::FromStr for RuntimeConfig {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<RuntimeConfig, Self::Err> {
        let mut config = RuntimeConfig::default();
        config.add(text);
        Ok(config)
    }
}

/// The version, and the resource if there is one, that a key names.
struct Name {
    version: GroupVersion,
    resource: Option<String>,
}

impl Name {
    fn parse(key: &str) -> Option<Name> {
        let mut parts = key.split('/');
        let version = GroupVersion::new(parts.next()?, parts.next()?);
        let resource = parts.next().map(str::to_owned);
        parts.next().is_none().then_some(Name { version, resource })
    }
}

/// The enabled versions and resources.
#[derive(Debug, Clone, Default)]
pub struct ResourceConfig {
    versions: HashMap<GroupVersion, bool>,
    resources: HashMap<GroupVersionResource, bool>,
}

impl ResourceConfig {
    /// The defaults: versions, and whether each is enabled.
    pub fn new(versions: impl IntoIterator<Item = (GroupVersion, bool)>) -> ResourceConfig {
        ResourceConfig { versions: versions.into_iter().collect(), resources: HashMap::new() }
    }

    /// Whether a resource is to be served.
    pub fn resource_enabled(&self, resource: &GroupVersionResource) -> bool {
        let version = GroupVersion::new(resource.group.clone(), resource.version.clone());
        match self.resources.get(resource) {
            Some(enabled) => *enabled,
            None => self.versions.get(&version).copied().unwrap_or_default(),
        }
    }

    /// Applies the configuration. `registered` has all versions that exist, also those without a default.
    ///
    /// # Errors
    /// The first error of the configuration.
    pub fn merge(
        &mut self,
        config: &RuntimeConfig,
        registered: &[GroupVersion],
    ) -> Result<(), RuntimeConfigError> {
        for (word, matches) in WORDS {
            let Some(value) = config.0.get(word) else { continue };
            let enabled = match value.as_str() {
                "true" => true,
                "false" => false,
                _ => {
                    return Err(RuntimeConfigError::ValueOfMany {
                        key: word.to_owned(),
                        value: value.clone(),
                    });
                }
            };
            for (version, own) in &mut self.versions {
                if matches(&version.version) {
                    *own = enabled;
                }
            }
        }
        let mut resources = Vec::new();
        for (key, name, value) in config.names() {
            let Ok(Name { version, resource }) = name else { continue };
            if !registered.iter().any(|known| known.group == version.group) {
                continue;
            }
            if !registered.contains(&version) {
                return Err(RuntimeConfigError::NotRegistered(version));
            }
            let enabled = boolean(value)
                .ok_or_else(|| RuntimeConfigError::Value { key: key.to_owned(), value: value.to_owned() })?;
            match resource {
                None => {
                    self.versions.insert(version, enabled);
                }
                Some(resource) if resource.to_lowercase() != resource => {
                    return Err(RuntimeConfigError::Resource { key: key.to_owned(), resource });
                }
                Some(resource) => {
                    resources
                        .push((GroupVersionResource::new(version.group, version.version, resource), enabled));
                }
            }
        }
        self.resources.extend(resources);
        Ok(())
    }
}

/// Whether a version is `v` and a number, followed by the stage and another number if `stage` is not empty.
fn is_version(version: &str, stage: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(version) = version.strip_prefix('v') else { return false };
    match stage.is_empty() {
        true => is_number(version),
        false => version.split_once(stage).is_some_and(|(major, minor)| is_number(major) && is_number(minor)),
    }
}

/// A value; the empty text is true.
fn boolean(text: &str) -> Option<bool> {
    if text.is_empty() { Some(true) } else { parse_bool(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> Vec<GroupVersion> {
        ["v1", "apps/v1", "apps/v1beta1", "batch/v1", "n.k8s.io/v1", "n.k8s.io/v1beta1", "n.k8s.io/v1alpha1"]
            .iter()
            .map(|version| GroupVersion::parse(version).unwrap())
            .collect()
    }

    fn merged(text: &str) -> Result<ResourceConfig, RuntimeConfigError> {
        let config: RuntimeConfig = text.parse().unwrap();
        let registered = registered();
        let known = |group: &str| registered.iter().any(|version| version.group == group);
        config.validate(known)?;
        let default = registered.iter().filter(|version| version.to_string() != "apps/v1beta1");
        let mut merged =
            ResourceConfig::new(default.map(|version| (version.clone(), !version.version.contains('a'))));
        merged.merge(&config, &registered)?;
        Ok(merged)
    }

    /// The enabled ones of these resources: pods, deployments, jobs, and `things` in three versions.
    fn enabled(text: &str) -> String {
        let config = merged(text).unwrap();
        let resources = [
            ("p", "", "v1", "pods"),
            ("d", "apps", "v1", "deployments"),
            ("j", "batch", "v1", "jobs"),
            ("1", "n.k8s.io", "v1", "things"),
            ("b", "n.k8s.io", "v1beta1", "things"),
            ("a", "n.k8s.io", "v1alpha1", "things"),
        ];
        let is_enabled = |group: &str, version: &str, resource: &str| {
            config.resource_enabled(&GroupVersionResource::new(group, version, resource))
        };
        let on =
            resources.iter().filter(|(_, group, version, resource)| is_enabled(group, version, resource));
        on.map(|(letter, ..)| *letter).collect()
    }

    #[test]
    fn the_narrower_word_counts() {
        let check = |text: &str, expected: &str| assert_eq!(enabled(text), expected, "{text}");
        check("", "pdj1");
        check("api/all=true", "pdj1ba");
        check("api/beta=true", "pdj1b");
        check("api/alpha=true", "pdj1a");
        check("api/ga=false", "");
        check("api/ga=false,api/beta=true", "b");
        check("api/all=false,api/ga=true", "pdj1");
        check("api/all=true,api/alpha=false", "pdj1b");
        check("api/all=false,/v1=true", "p");
        check("api/all=false,api/v1", "p");
        check("api/v1=false", "dj1");
        check("v1=false", "dj1");
        check("api/v1/pods=false", "dj1");
        check("v1/pods=false", "dj1");
        check("api/legacy=false", "pdj1");
        check("apps/v1=false", "pj1");
        check("n.k8s.io/v1beta1", "pdj1b");
        check("n.k8s.io/v1beta1=1", "pdj1b");
        check(" n.k8s.io/v1beta1 = true ,,", "pdj1b");
        check("apps/v1/deployments=false", "pj1");
        check("apps/v1/daemonsets=false", "pdj1");
        check("apps/v1=false,apps/v1/deployments=true", "pdj1");
        check("api/all=false,batch/v1/jobs=true", "j");
        check("n.k8s.io/v1alpha1/things=true", "pdj1a");
        check("apps/v1=false,apps/v1=true", "pdj1");
        // The version exists and has no resources any more.
        check("apps/v1beta1=true", "pdj1");
    }

    #[test]
    fn mistakes_have_the_messages_of_the_reference() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                merged(text).err().map(|error| error.to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        };
        check("api/all=false", "invalid runtime-config with only api/all=false");
        check("v2=true", "runtime-config invalid key v2");
        check("a/b/c/d=true", "runtime-config invalid key a/b/c/d");
        check("nope/v1=true,also.nope/v2/things", "unknown api groups also.nope/v2,nope/v1");
        check("api/v2=true", "unknown api groups api/v2");
        check("api/all=false,api/legacy=true", "invalid runtime-config with only api/all=false");
        check("api/all=yes", "invalid value api/all=yes");
        check("api/beta", "invalid value api/beta=");
        check("apps/v7=true", "group version apps/v7 that has not been registered");
        check(
            "apps/v1=maybe",
            "invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        );
        check(
            "apps/v1/Deployments=true",
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \
             \"Deployments\"",
        );
    }
}
