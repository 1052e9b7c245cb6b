//! Finds the nodes of a schema by name.

use crate::cursor::SchemaRef;
use crate::node::NodeId;
use crate::schema::Schema;

/// The package whose kinds belong to every group and version.
const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1";

/// A top-level kind of the built-in schema.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Its fields.
    pub schema: SchemaRef<'a>,
}

impl Schema {
    /// The root node of a custom resource's schema. For the built-in schema it is no particular type.
    pub fn root(&self) -> SchemaRef<'_> {
        self.node(self.root)
    }

    /// The node with this id, which must come from this schema.
    pub fn node(&self, id: NodeId) -> SchemaRef<'_> {
        SchemaRef::new(self, id)
    }

    /// A type by its Go name with package path, such as `k8s.io/api/core/v1.Pod`.
    pub fn by_type_name(&self, name: &str) -> Option<SchemaRef<'_>> {
        let (package, name) = name.rsplit_once('.')?;
        let at = self
            .types
            .binary_search_by(|&id| {
                let node = self.node(id);
                node.package().cmp(package).then_with(|| node.name().cmp(name))
            })
            .ok()?;
        self.types.get(at).map(|&id| self.node(id))
    }

    /// A top-level kind. The kinds of the meta package (`DeleteOptions`, `Status`, `WatchEvent`, …) are found under
    /// every group and version, unless the group has a kind of the same name.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<SchemaRef<'_>> {
        self.own_kind(group, version, kind).or_else(|| self.meta_kind(kind))
    }

    /// A top-level kind that belongs to one group and version.
    pub fn own_kind(&self, group: &str, version: &str, kind: &str) -> Option<SchemaRef<'_>> {
        let found = self.kinds.binary_search_by(|&id| {
            let node = self.node(id);
            let (other_group, other_version) = node.group_version();
            other_group
                .cmp(group)
                .then_with(|| other_version.cmp(version))
                .then_with(|| node.name().cmp(kind))
        });
        self.kinds.get(found.ok()?).map(|&id| self.node(id))
    }

    /// Whether kinds belong to this group and version.
    pub fn has_kinds_of(&self, group: &str, version: &str) -> bool {
        let found = self.kinds.binary_search_by(|&id| self.node(id).group_version().cmp(&(group, version)));
        found.is_ok()
    }

    /// A top-level kind of the meta package.
    pub fn meta_kind(&self, kind: &str) -> Option<SchemaRef<'_>> {
        let found = self.by_meta_name(kind)?;
        (kind == "WatchEvent" || found.is_object()).then_some(found)
    }

    fn by_meta_name(&self, name: &str) -> Option<SchemaRef<'_>> {
        let at = self
            .types
            .binary_search_by(|&id| {
                let node = self.node(id);
                node.package().cmp(META).then_with(|| node.name().cmp(name))
            })
            .ok()?;
        self.types.get(at).map(|&id| self.node(id))
    }

    /// The top-level kinds that belong to one group and version, sorted by group, version and kind.
    pub fn kinds(&self) -> impl Iterator<Item = Kind<'_>> {
        self.kinds.iter().map(|&id| {
            let schema = self.node(id);
            let (group, version) = schema.group_version();
            Kind { group, version, kind: schema.name(), schema }
        })
    }
}
