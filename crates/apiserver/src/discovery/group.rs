//! The groups, versions and resources that discovery lists.

use crate::registry::CustomResource;
use base64::Engine;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{GroupVersionKind, Value, compare_versions, json};
use pintle_registry::{Resource, SubresourceKind, Verb};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// One group with its versions, the preferred one first.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: Vec<Version>,
}

/// One version with its resources, sorted by name.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) resources: Vec<Listed>,
}

/// One resource of a version.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) resource: Arc<Resource>,
    /// Whether the resource's `CustomResourceDefinition` is being deleted. Its objects can then be read and deleted only.
    pub(super) is_terminating: bool,
    /// Whether the version in which objects are stored is served.
    pub(super) serves_storage: bool,
}

impl Listed {
    /// The names of the verbs.
    pub(super) fn verbs(&self) -> Value {
        let is_listed =
            |verb: &Verb| !self.is_terminating || !matches!(verb, Verb::Create | Verb::Patch | Verb::Update);
        self.resource.verbs.iter().copied().filter(is_listed).map(Verb::as_str).collect()
    }
}

/// Adds a resource to its group and version. New groups and versions are appended.
pub(super) fn add(groups: &mut Vec<Group>, listed: Listed) {
    let id = &listed.resource.resource;
    let at = match groups.iter().position(|group| group.name == id.group) {
        Some(at) => at,
        None => {
            groups.push(Group { name: id.group.clone(), versions: Vec::new() });
            groups.len() - 1
        }
    };
    let Some(group) = groups.get_mut(at) else { return };
    let at = match group.versions.iter().position(|version| version.name == id.version) {
        Some(at) => at,
        None => {
            group.versions.push(Version { name: id.version.clone(), resources: Vec::new() });
            group.versions.len() - 1
        }
    };
    if let Some(version) = group.versions.get_mut(at) {
        version.resources.push(listed);
    }
}

/// The group of custom resources, its versions by version priority: `v2` before `v1` before `v2beta1`.
pub(super) fn custom_group(custom: &[Arc<CustomResource>]) -> Option<Group> {
    let mut groups = Vec::new();
    for custom in custom {
        let is_terminating = custom.is_terminating();
        let serves_storage = custom.versions().iter().any(|version| {
            let resource = &version.resource;
            resource.group_version_kind() == resource.storage.kind
        });
        for version in custom.versions() {
            let resource = version.resource.clone();
            add(&mut groups, Listed { resource, is_terminating, serves_storage });
        }
    }
    let mut group = groups.pop()?;
    group.versions.sort_by(|a, b| compare_versions(&b.name, &a.name));
    Some(group)
}

/// A short hash of the resource's storage version: a change of it tells clients that the storage version changed. There
/// is none when that version is not served.
pub(super) fn storage_version_hash(listed: &Listed) -> Option<String> {
    let resource = &listed.resource;
    if !resource.is_stored() || !listed.serves_storage || !enabled(Gate::StorageVersionHash) {
        return None;
    }
    let kind = &resource.storage.kind;
    let digest = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
    Some(base64::engine::general_purpose::STANDARD.encode(digest.get(..8)?))
}

/// The kind and verbs of a subresource.
pub(super) fn subresource_facts(resource: &Resource, kind: &SubresourceKind) -> (Value, Vec<Verb>) {
    let own = resource.group_version_kind();
    let (kind, verbs) = match kind {
        SubresourceKind::Object { verbs, .. } => (own.clone(), verbs.clone()),
        SubresourceKind::Scale(_) => {
            (GroupVersionKind::new("autoscaling", "v1", "Scale"), vec![Verb::Get, Verb::Patch, Verb::Update])
        }
        SubresourceKind::Create { kind, .. } => (kind.clone(), vec![Verb::Create]),
        SubresourceKind::Connect { kind, verbs, .. } => (kind.clone(), verbs.clone()),
    };
    let mut verbs = verbs;
    verbs.sort();
    let same = kind.group == own.group && kind.version == own.version;
    let facts = match same {
        true => json!({"group": "", "version": "", "kind": kind.kind}),
        false => json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
    };
    (facts, verbs)
}

pub(super) fn verb_names(verbs: &[Verb]) -> Value {
    let mut verbs = verbs.to_vec();
    verbs.sort();
    verbs.into_iter().map(Verb::as_str).collect()
}
