//! A resource in one of its served versions.

use super::{Store, TypeSchema, versions::convert_unpruned};
use crate::metrics::{BodySeries, ResourceSeries, WatchSeries};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::Resource;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// A resource in one served version.
pub struct VersionedResource {
    /// The declaration of this version.
    pub resource: Arc<Resource>,
    /// The schema of this version's objects.
    pub schema: TypeSchema,
    /// The index of the version within its store; 0 is the storage version.
    pub slot: u32,
    /// The store of its objects; `None` for resources that are not stored.
    pub store: Option<Arc<Store>>,
    /// The series of its metrics.
    pub(crate) series: VersionSeries,
}

/// The series of the metrics of a resource in one version. Each is made by the first request that records it.
#[derive(Default)]
pub(crate) struct VersionSeries {
    pub(crate) requests: ResourceSeries,
    pub(crate) bodies: BodySeries,
    pub(crate) watches: OnceLock<Arc<WatchSeries>>,
}

impl VersionedResource {
    /// Whether this is the registry's version, so that objects need no built-in conversion.
    pub fn is_storage_version(&self) -> bool {
        self.resource.conversion.is_none()
    }

    /// Whether the cache holds all objects in this version. Objects that are stored as written may be in any.
    pub fn is_cached_version(&self) -> bool {
        self.resource.converter.is_none() && self.resource.conversion.is_none()
    }

    /// Converts an object from the storage version to this one.
    pub fn from_storage(&self, object: Value) -> Value {
        match self.resource.conversion {
            Some(conversion) => (conversion.from_storage)(object),
            None => object,
        }
    }

    /// Converts an object of the store to this version, by functions or, for objects that are stored as written, by the
    /// converter of the resource, which keeps unknown fields.
    ///
    /// # Errors
    /// Those of the converter.
    pub async fn converted<'a>(&self, object: &'a Value) -> Result<Cow<'a, Value>, Status> {
        match &self.resource.converter {
            Some(converter)
                if object.str_at("apiVersion") != self.resource.resource.group_version().to_string() =>
            {
                let converted = convert_unpruned(&**converter, object.clone(), &self.resource, &self.schema);
                converted.await.map(Cow::Owned)
            }
            None if self.resource.conversion.is_some() => Ok(Cow::Owned(self.from_storage(object.clone()))),
            _ => Ok(Cow::Borrowed(object)),
        }
    }

    /// Converts an object from this version to the storage version.
    pub fn to_storage(&self, object: Value) -> Value {
        match self.resource.conversion {
            Some(conversion) => (conversion.to_storage)(object),
            None => object,
        }
    }
}
