//! Validates a tree, and reports all its errors at once.

use super::types::{Key, KmsApiVersion, KmsConfiguration, ProviderConfiguration, ResourceConfiguration};
use crate::kms::{Endpoint, EndpointError};
use pintle_go_forms::base64;
use pintle_go_forms::{parse_duration, quote};
use pintle_machinery::{ErrorList, FieldError, FieldPath, GroupResource, Value, ValueExt};
use std::{collections::HashSet, time::Duration};
use zeroize::Zeroizing;

const AES_KEY_SIZES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_SIZES: &[usize] = &[32];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

/// The rules of a configuration, if it is valid.
pub(super) fn validate(tree: &Value, reload: bool) -> Result<Vec<ResourceConfiguration>, ErrorList> {
    let mut validator = Validator { errors: Vec::new(), kms_names: HashSet::new(), reload };
    let rules = validator.rules(tree);
    match validator.errors.is_empty() {
        true => Ok(rules),
        false => Err(validator.errors),
    }
}

struct Validator {
    errors: ErrorList,
    kms_names: HashSet<String>,
    reload: bool,
}

impl Validator {
    fn rules(&mut self, tree: &Value) -> Vec<ResourceConfiguration> {
        let root = FieldPath::new("resources");
        let rules = tree.items_at("resources");
        if rules.is_empty() {
            self.required(&root, "at least one resources is required");
        }
        let rules = rules.iter().enumerate();
        rules.map(|(position, rule)| self.rule(rule, &root.index(position))).collect()
    }

    fn rule(&mut self, rule: &Value, path: &FieldPath) -> ResourceConfiguration {
        let resources_path = path.child("resources");
        let names: Vec<&str> = rule.items_at("resources").iter().map(text).collect();
        if names.is_empty() {
            self.required(&resources_path, format!("at least one {resources_path} is required"));
        }
        let resources: Vec<_> = names.iter().map(|name| group_resource(name)).collect();
        self.overlaps(&names, &resources, &resources_path);
        for (position, (name, resource)) in names.iter().zip(&resources).enumerate() {
            if let Some(why) = wrong_resource(name, resource) {
                self.errors.push(FieldError::invalid(&resources_path.index(position), *name, why));
            }
        }
        let providers_path = path.child("providers");
        let providers = rule.items_at("providers");
        if providers.is_empty() {
            self.required(&providers_path, format!("at least one {providers_path} is required"));
        }
        let providers = providers.iter().enumerate();
        let providers = providers
            .filter_map(|(position, provider)| self.provider(provider, &providers_path.index(position)));
        ResourceConfiguration { providers: providers.collect(), resources }
    }

    /// Reports resources of one list that are duplicates, or that a wildcard of the same list includes.
    fn overlaps(&mut self, names: &[&str], resources: &[GroupResource], path: &FieldPath) {
        let (mut has_duplicate, mut has_overlap) = (false, false);
        for (position, one) in resources.iter().enumerate() {
            for other in resources.iter().skip(position + 1) {
                if one == other {
                    has_duplicate = true;
                    has_overlap |= one.resource == "*";
                } else {
                    has_overlap |= is_everything(one) || is_everything(other);
                    has_overlap |= one.group == other.group && (one.resource == "*" || other.resource == "*");
                }
            }
        }
        let mut note = |is: bool, why: &str| {
            if is {
                let error = FieldError::invalid(path, Value::from(names.to_vec()), why);
                self.errors.push(error);
            }
        };
        note(has_duplicate, "the same resource cannot be specified multiple times");
        note(
            has_overlap,
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
             they will be masked",
        );
    }

    fn provider(&mut self, provider: &Value, path: &FieldPath) -> Option<ProviderConfiguration> {
        const KINDS: [&str; 5] = ["aesgcm", "aescbc", "secretbox", "identity", "kms"];
        let found: Vec<&str> = KINDS.into_iter().filter(|kind| provider.field(kind).is_some()).collect();
        let why = match found.as_slice() {
            [_] => None,
            [] => Some(
                "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
            ),
            [..] => Some(
                "more than one provider specified in a single element, should split into different list elements",
            ),
        };
        if let Some(why) = why {
            // Only the types are shown: the contents have secrets.
            self.errors.push(FieldError::invalid(path, Value::from(found.clone()), why));
        }
        if let Some(kms) = provider.field("kms") {
            return self.kms(kms, &path.child("kms")).map(ProviderConfiguration::Kms);
        }
        let mut keys = |kind: &str, sizes| {
            let keys = provider.field(kind)?;
            Some(self.keys(keys, &path.child(kind).child("keys"), sizes))
        };
        if let Some(keys) = keys("aesgcm", AES_KEY_SIZES) {
            return Some(ProviderConfiguration::AesGcm(keys));
        }
        if let Some(keys) = keys("aescbc", AES_KEY_SIZES) {
            return Some(ProviderConfiguration::AesCbc(keys));
        }
        if let Some(keys) = keys("secretbox", SECRETBOX_KEY_SIZES) {
            return Some(ProviderConfiguration::Secretbox(keys));
        }
        provider.field("identity").map(|_| ProviderConfiguration::Identity)
    }

    fn keys(&mut self, provider: &Value, path: &FieldPath, sizes: &[usize]) -> Vec<Key> {
        let keys = provider.items_at("keys");
        if keys.is_empty() {
            self.required(path, "at least one keys is required");
        }
        let keys = keys.iter().enumerate();
        keys.filter_map(|(position, key)| self.key(key, &path.index(position), sizes)).collect()
    }

    fn key(&mut self, key: &Value, path: &FieldPath, sizes: &[usize]) -> Option<Key> {
        let name = key.str_at("name");
        if name.is_empty() {
            self.required(&path.child("name"), "name is a mandatory field for a key");
        }
        let path = path.child("secret");
        let secret = key.str_at("secret");
        if secret.is_empty() {
            self.required(&path, "secret is a mandatory field for a key");
            return None;
        }
        let Ok(secret) = base64::decode(secret).map(Zeroizing::new) else {
            self.errors.push(FieldError::invalid(&path, "REDACTED", "secrets must be base64 encoded"));
            return None;
        };
        if !sizes.contains(&secret.len()) {
            let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
            let why = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                secret.len(),
                sizes.join(" ")
            );
            self.errors.push(FieldError::invalid(&path, "REDACTED", why));
        }
        Some(Key { name: name.to_owned(), secret })
    }

    fn kms(&mut self, kms: &Value, path: &FieldPath) -> Option<KmsConfiguration> {
        let name = kms.str_at("name");
        let api_version = match kms.str_at("apiVersion") {
            "" => "v1",
            version => version,
        };
        self.kms_name(name, api_version, &path.child("name"));
        let timeout = self.kms_timeout(kms, &path.child("timeout"));
        let endpoint = self.kms_endpoint(kms.str_at("endpoint"), &path.child("endpoint"));
        let cache_size = kms.i64_at("cachesize");
        let why = match (api_version, cache_size) {
            ("v1", Some(0)) => Some("cachesize should be a positive value, or negative to disable"),
            ("v1", _) | (_, None) => None,
            (_, Some(_)) => Some("cachesize is not supported in v2"),
        };
        if let (Some(why), Some(cache_size)) = (why, cache_size) {
            self.errors.push(FieldError::invalid(&path.child("cachesize"), cache_size, why));
        }
        let api_version = match api_version {
            "v1" => KmsApiVersion::V1,
            "v2" => KmsApiVersion::V2,
            other => {
                // The reference writes the field's name in place of its value.
                let why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
                self.errors.push(FieldError::invalid(&path.child("apiVersion"), other, why));
                return None;
            }
        };
        Some(KmsConfiguration { api_version, name: name.to_owned(), endpoint: endpoint?, timeout: timeout? })
    }

    fn kms_name(&mut self, name: &str, api_version: &str, path: &FieldPath) {
        if name.is_empty() {
            self.required(path, "name is a mandatory field for a provider");
        }
        if api_version != "v1" && name.contains(':') {
            let why = format!("invalid KMS provider name {name}, must not contain ':'");
            self.errors.push(FieldError::invalid(path, name, why));
        }
        let is_new = self.kms_names.insert(name.to_owned());
        if !is_new && (self.reload || api_version != "v1") {
            let why = format!("duplicate KMS provider name {name}, names must be unique");
            self.errors.push(FieldError::invalid(path, name, why));
        }
    }

    fn kms_timeout(&mut self, kms: &Value, path: &FieldPath) -> Option<Duration> {
        let Some(text) = kms.field("timeout").and_then(Value::as_str) else { return Some(DEFAULT_TIMEOUT) };
        let nanoseconds = parse_duration(text).ok().and_then(|timeout| u64::try_from(timeout).ok());
        match nanoseconds.filter(|timeout| *timeout > 0) {
            Some(timeout) => Some(Duration::from_nanos(timeout)),
            None => {
                self.errors.push(FieldError::invalid(path, text, "timeout should be a positive value"));
                None
            }
        }
    }

    fn kms_endpoint(&mut self, endpoint: &str, path: &FieldPath) -> Option<Endpoint> {
        let why = match Endpoint::parse(endpoint) {
            Ok(parsed) => return Some(parsed),
            Err(_) if endpoint.is_empty() => "endpoint is a mandatory field for a kms".to_owned(),
            Err(EndpointError::Url(why)) => format!("invalid endpoint for kms provider, error: {why}"),
            Err(EndpointError::Scheme(scheme)) => {
                format!("unsupported scheme {} for KMS provider, only unix is supported", quote(&scheme))
            }
        };
        self.errors.push(FieldError::invalid(path, endpoint, why));
        None
    }

    fn required(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.errors.push(FieldError::required(path, detail));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Parses the name of a resource in a rule: `secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`.
fn group_resource(name: &str) -> GroupResource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource::new(group, resource)
}

fn is_everything(resource: &GroupResource) -> bool {
    resource.group == "*" && resource.resource == "*"
}

/// The reason why a rule may not name a resource.
fn wrong_resource(name: &str, resource: &GroupResource) -> Option<&'static str> {
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    match (name, resource.group.as_str()) {
        ("*", _) => {
            Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources")
        }
        ("apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations", _) => {
            Some("resources which do not have REST API/s cannot be encrypted")
        }
        (_, "events.k8s.io") => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        ),
        (_, "extensions") => Some("'extensions' group has been removed and cannot be used for encryption"),
        (_, "*") if resource.resource != "*" => {
            Some("encrypting the same resource across groups is not supported")
        }
        _ => None,
    }
}
