//! Tests that the declarations have the names, kinds, scopes, verbs, short names, categories, subresources and storage
//! versions that a v1.36 server serves by default.
//!
//! `served_discovery.txt` is the discovery of such a server, with a line for each resource: name, singular name, kind
//! (with group and version if they differ from the resource's), scope, verbs, short names, categories, storage version
//! hash.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle_machinery::{GroupVersion, GroupVersionKind};
use pintle_registry::{Resource, SubresourceKind, Verb};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Groups that other servers of the chain declare.
const DECLARED_ELSEWHERE: [&str; 2] = ["apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1"];

#[test]
fn declarations_reproduce_the_discovery_of_the_reference() {
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut group_version = "";
    for line in include_str!("served_discovery.txt").lines() {
        match line.strip_prefix("# ") {
            Some(name) => group_version = name,
            None => expected.entry(group_version.to_owned()).or_default().push(line.to_owned()),
        }
    }
    expected.retain(|name, _| !DECLARED_ELSEWHERE.contains(&name.as_str()));
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in pintle_api::resources(&pintle_api::Config::default()) {
        let group_version = resource.resource.group_version();
        declared.entry(group_version.to_string()).or_default().extend(lines(&resource, &group_version));
    }
    declared.values_mut().for_each(|lines| lines.sort_by(|a, b| name_of(a).cmp(name_of(b))));
    expected.values_mut().for_each(|lines| lines.sort_by(|a, b| name_of(a).cmp(name_of(b))));
    assert_eq!(declared, expected);
}

#[test]
fn every_stored_resource_has_a_place_of_its_own() {
    let mut kinds = BTreeMap::new();
    for resource in
        pintle_api::resources(&pintle_api::Config::default()).iter().filter(|resource| resource.is_stored())
    {
        let kind = resource.storage.kind.clone();
        let other = kinds.insert(resource.storage.path.clone(), kind.clone()).unwrap_or(kind.clone());
        assert_eq!(other, kind, "{} is shared by two kinds", resource.storage.path);
    }
}

fn name_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

fn lines(resource: &Resource, group_version: &GroupVersion) -> Vec<String> {
    let scope = if resource.is_namespaced() { "namespaced" } else { "cluster" };
    let hash = match resource.is_stored() {
        true => storage_version_hash(&resource.storage.kind),
        false => "-".to_owned(),
    };
    let mut lines = vec![format!(
        "{} {} {} {scope} {} {} {} {hash}",
        resource.resource.resource,
        resource.singular,
        resource.kind,
        verbs(&resource.verbs),
        joined(&resource.short_names),
        joined(&resource.categories),
    )];
    for subresource in &resource.subresources {
        let own = group_version.with_kind(resource.kind.clone());
        let part = [Verb::Get, Verb::Patch, Verb::Update];
        let (kind, its_verbs) = match &subresource.kind {
            SubresourceKind::Object { verbs, .. } => (own, verbs.clone()),
            SubresourceKind::Scale(_) => (GroupVersionKind::new("autoscaling", "v1", "Scale"), part.into()),
            SubresourceKind::Create { kind, .. } => (kind.clone(), vec![Verb::Create]),
            SubresourceKind::Connect { kind, verbs, .. } => (kind.clone(), verbs.clone()),
        };
        let kind = match kind.group_version() == *group_version {
            true => kind.kind,
            false => format!("{}/{}.{}", kind.group, kind.version, kind.kind),
        };
        lines.push(format!(
            "{}/{} - {kind} {scope} {} - - -",
            resource.resource.resource,
            subresource.name,
            verbs(&its_verbs)
        ));
    }
    lines
}

fn verbs(verbs: &[Verb]) -> String {
    let mut names: Vec<String> = verbs.iter().map(|verb| verb.as_str().to_owned()).collect();
    names.sort();
    joined(&names)
}

fn joined(names: &[String]) -> String {
    match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(","),
    }
}

/// The hash in discovery that identifies the storage version.
fn storage_version_hash(kind: &GroupVersionKind) -> String {
    let digest = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}
