//! The kind that a body is decoded to.

use crate::registry::VersionedResource;
use pintle_machinery::{GroupVersionKind, Status, Value};
use pintle_registry::{ObjectModel, Strategy};
use pintle_schema::SchemaRef;

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

    /// Brings a decoded object into the shape of its schema. Returns the paths of the unknown fields, which it removes.
    ///
    /// # Errors
    /// The `Status` of [`Strategy::coerce`].
    pub(super) fn coerce(&self, object: &mut Value) -> Result<Vec<String>, Status> {
        self.strategy.map_or_else(|| Ok(Vec::new()), |strategy| strategy.coerce(object, true))
    }
}
