//! Defines [`RestMapper`], the resources of kinds.

use pintle_machinery::{GroupVersionKind, GroupVersionResource};

/// A resource whose objects are of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindMapping {
    /// The resource.
    pub resource: GroupVersionResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
}

/// Finds the resources of a kind, those of custom resource definitions among them. Called while a request is served, so
/// it must answer from memory.
pub trait RestMapper: Send + Sync {
    /// The served resources whose objects are of this kind.
    fn mappings(&self, kind: &GroupVersionKind) -> Vec<KindMapping>;
}
