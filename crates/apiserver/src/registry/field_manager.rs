//! The field manager of a stored resource: who writes, and how entries of other versions are understood.

use super::{Stores, VersionedResource, in_version::convert_now};
use jiff::Timestamp;
use pintle_machinery::{
    Value, ValueExt,
    managed_fields::{FieldManager, VersionConverter},
};
use pintle_registry::SubresourceKind;
use pintle_schema::SchemaRef;
use std::sync::{Arc, OnceLock};

/// One write, as the bookkeeping of fields sees it.
pub struct ManagedWrite<'a> {
    /// All resources, for the other versions of the kind.
    pub stores: &'a Stores,
    /// The resource in the version of the request.
    pub resource: &'a VersionedResource,
    /// The name of the writer.
    pub manager: &'a str,
    /// The subresource written through, or "".
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
    /// All versions of the resource, once somebody has asked for them.
    pub versions: OnceLock<Vec<Arc<VersionedResource>>>,
}

impl ManagedWrite<'_> {
    /// Brings `managedFields` of `new` up to date, as it is about to be written over `old`; both in the storage version.
    pub fn update(&self, old: Option<&Value>, new: &mut Value) {
        if self.resource.is_storage_version() {
            return self.with_manager(|manager| manager.update(old, new));
        }
        let old = old.map(|old| self.resource.from_storage(old.clone()));
        let mut versioned = self.resource.from_storage(new.clone());
        self.with_manager(|manager| manager.update(old.as_ref(), &mut versioned));
        match versioned.remove_at("metadata.managedFields") {
            Some(entries) => new.set("metadata.managedFields", entries),
            None => drop(new.remove_at("metadata.managedFields")),
        }
    }

    /// Runs the field manager of the request's version.
    pub fn with_manager<R>(&self, run: impl FnOnce(&FieldManager<'_>) -> R) -> R {
        let api_version = self.resource.resource.resource.group_version().to_string();
        run(&FieldManager {
            manager: self.manager,
            api_version: &api_version,
            subresource: self.subresource,
            now: self.now,
            schema: self.resource.schema.get(),
            reset_fields: self.reset_fields(),
            versions: self,
        })
    }

    /// What a way of writing leaves as it is: the object itself its status, the status all but itself.
    fn reset_fields(&self) -> &'static [&'static str] {
        let resource = &self.resource.resource;
        let part =
            resource.subresource(if self.subresource.is_empty() { "status" } else { self.subresource });
        let Some(SubresourceKind::Part { strategy, .. }) = part.map(|part| &part.kind) else { return &[] };
        match self.subresource {
            "" => resource.strategy.reset_fields().unwrap_or(&["status"]),
            "status" => strategy.reset_fields().unwrap_or(&["spec"]),
            _ => strategy.reset_fields().unwrap_or_default(),
        }
    }
}

impl VersionConverter for ManagedWrite<'_> {
    fn convert<'a>(&'a self, object: &Value, from: &str, to: &str) -> Option<(Value, SchemaRef<'a>)> {
        let versions =
            self.versions.get_or_init(|| self.stores.versions_of(&self.resource.resource));
        let find = |version: &str| {
            versions.iter().find(|resource| resource.resource.resource.group_version().to_string() == version)
        };
        let (from, to) = (find(from)?, find(to)?);
        let converted = match &to.resource.converter {
            Some(converter) => {
                convert_now(&**converter, object.clone(), &to.resource, &to.schema).ok()?
            }
            None => to.from_storage(from.to_storage(object.clone())),
        };
        Some((converted, to.schema.get()))
    }
}
