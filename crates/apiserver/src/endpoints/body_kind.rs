//! The kind that a body is decoded to.

use super::request_scope::RequestScope;
use crate::registry::VersionedResource;
use pintle_machinery::{GroupVersion, GroupVersionKind, Status, Value};
use pintle_registry::{ObjectModel, Strategy};
use pintle_schema::{FieldSpec, Schema, SchemaBuilder, SchemaRef, StructSpec, Structural, Type};
use std::{
    cell::OnceCell,
    sync::{Arc, LazyLock},
};

/// A kind, and how its objects are decoded.
#[derive(Clone, Copy)]
pub(super) struct BodyKind<'a> {
    /// The kind in the version of the path.
    pub(super) kind: &'a GroupVersionKind,
    /// The schema of this version.
    pub(super) schema: SchemaRef<'a>,
    /// How the objects are held.
    pub(super) model: &'a ObjectModel,
    strategy: Option<&'a dyn Strategy>,
}

impl<'a> BodyKind<'a> {
    /// The kind of a resource's objects.
    pub(super) fn of(resource: &'a VersionedResource, kind: &'a GroupVersionKind) -> BodyKind<'a> {
        BodyKind {
            kind,
            schema: resource.schema.get(),
            model: &resource.resource.model,
            strategy: Some(&*resource.resource.strategy),
        }
    }

    /// Another kind than the resource's, which the built-in schema has: options, a scale, a review.
    pub(super) fn built_in(kind: &'a GroupVersionKind, schema: SchemaRef<'a>) -> BodyKind<'a> {
        BodyKind { kind, schema, model: &ObjectModel::BUILT_IN, strategy: None }
    }

    /// The kind that an object is decoded to which claims this type metadata: of this kind, the claimed version, which
    /// `other` then holds. Of another kind only the metadata has known fields; of a version without a schema, too, but
    /// the other fields are unknown.
    pub(super) fn of_claim(
        self,
        scope: &RequestScope<'_>,
        api_version: &str,
        kind: &str,
        other: &'a OnceCell<Arc<VersionedResource>>,
    ) -> BodyKind<'a> {
        let anything = BodyKind { schema: METADATA_AND_ANYTHING.root(), strategy: None, ..self };
        if !is_of_kind(api_version, kind, self.kind) {
            return anything;
        }
        let version = GroupVersion::parse(api_version).unwrap_or_default().version;
        if version == self.kind.version {
            return self;
        }
        let versions = scope.server.stores.versions_of(&scope.resource.resource);
        match versions.into_iter().find(|found| found.resource.resource.version == version) {
            Some(found) => BodyKind::of(other.get_or_init(|| found), self.kind),
            None => BodyKind { strategy: Some(&NoFields), ..anything },
        }
    }

    /// Brings a decoded object into the shape of its schema. Returns the paths of the unknown fields, which it removes.
    ///
    /// # Errors
    /// The `Status` of [`Strategy::coerce`].
    pub(super) fn coerce(&self, object: &mut Value) -> Result<Vec<String>, Status> {
        self.strategy.map_or_else(|| Ok(Vec::new()), |strategy| strategy.coerce(object, true))
    }
}

/// Whether an object that claims this type metadata is of the wanted kind, in any version.
pub(super) fn is_of_kind(api_version: &str, kind: &str, wanted: &GroupVersionKind) -> bool {
    let version = GroupVersion::parse(api_version);
    kind == wanted.kind && version.is_some_and(|version| version.group == wanted.group)
}

/// The fields that every object has, in a schema that allows any others.
static METADATA_AND_ANYTHING: LazyLock<Schema> = LazyLock::new(|| {
    let mut builder = SchemaBuilder::new();
    let anything = Structural { preserve_unknown_fields: true, ..Structural::default() };
    let text = builder.scalar(Type::String);
    builder.set_structural(text, anything.clone());
    let metadata = Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta");
    let metadata = builder.builtin(metadata.expect("the built-in schema has the metadata of objects"));
    let fields = [("kind", text), ("apiVersion", text), ("metadata", metadata)];
    let fields = fields.map(|(name, node)| (FieldSpec { name, ..FieldSpec::default() }, node)).to_vec();
    let root = builder.reserve();
    builder.set_struct(root, StructSpec { fields, ..StructSpec::default() });
    builder.set_structural(root, anything);
    builder.finish(root)
});

/// The maximum number of unknown fields that are reported.
const MAX_UNKNOWN: usize = 1000;

/// The strategy of objects of a version without a schema.
struct NoFields;

impl Strategy for NoFields {
    fn coerce(&self, object: &mut Value, _is_request: bool) -> Result<Vec<String>, Status> {
        let Some(members) = object.as_object_mut() else { return Ok(Vec::new()) };
        let is_known = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata");
        let unknown = members.keys().filter(|name| !is_known(name)).map(ToString::to_string);
        let unknown = unknown.take(MAX_UNKNOWN).collect();
        members.retain(|name, _| is_known(name));
        Ok(unknown)
    }
}
