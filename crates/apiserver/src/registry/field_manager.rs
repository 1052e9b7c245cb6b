//! Runs the field manager for a stored resource, with managed fields of all of its versions.

use super::{Conversions, Stores, VersionedResource};
use jiff::Timestamp;
use pintle_machinery::{
    Status, Value,
    codec::EmptyField,
    managed_fields::{Applied, FieldManager, VersionConverter, take_owners},
};
use pintle_registry::SubresourceKind;
use pintle_schema::SchemaRef;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// One write, as the field manager sees it.
pub struct ManagedWrite<'a> {
    /// All resources, for other versions of the kind.
    pub stores: &'a Stores,
    /// The resource in the version of the request.
    pub resource: &'a VersionedResource,
    /// The name of the field manager.
    pub manager: Cow<'a, str>,
    /// The subresource that is written, or "".
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
    /// The empty lists and maps in the body of the request.
    pub empty_fields: Vec<EmptyField>,
    /// All versions of the resource, looked up on first use.
    pub versions: OnceLock<Vec<Arc<VersionedResource>>>,
    /// The conversions that managed fields of other versions need.
    pub conversions: Conversions,
}

impl ManagedWrite<'_> {
    /// Updates `managedFields` of `new`, which is about to be written over `old`; both are in the storage version.
    pub async fn update(&self, old: Option<&Value>, new: &mut Value) {
        if self.resource.resource.converter.is_some() {
            // An attempt that lacked conversions must not leave its changes in the object of the next one.
            let updated = self.attempt(|manager| {
                let mut updated = new.clone();
                manager.update(old, &mut updated);
                updated
            });
            *new = updated.await;
            return;
        }
        if self.resource.is_storage_version() {
            return self.with_manager(|manager| manager.update(old, new));
        }
        let old = old.map(|old| self.resource.from_storage(old.clone()));
        let mut versioned = self.resource.from_storage(new.clone());
        self.with_manager(|manager| manager.update(old.as_ref(), &mut versioned));
        take_owners(new, &mut versioned);
    }

    /// The object after `config` is applied to `old`, both in the version of the request.
    ///
    /// # Errors
    /// The `Status` for the client.
    pub async fn apply(&self, old: Option<&Value>, config: &Value, force: bool) -> Result<Applied, Status> {
        self.attempt(|manager| manager.apply(old, config, force)).await
    }

    /// Runs the field manager until it has all conversions that it needs.
    async fn attempt<R>(&self, run: impl Fn(&FieldManager<'_>) -> R) -> R {
        loop {
            let result = self.with_manager(&run);
            if !self.conversions.settle().await {
                return result;
            }
        }
    }

    /// Runs the field manager in the request's version.
    fn with_manager<R>(&self, run: impl FnOnce(&FieldManager<'_>) -> R) -> R {
        let kind = self.resource.resource.group_version_kind();
        let api_version = kind.group_version().to_string();
        run(&FieldManager {
            manager: &self.manager,
            kind: &kind.kind,
            api_version: &api_version,
            subresource: self.subresource,
            now: self.now,
            schema: self.resource.schema.get(),
            reset_fields: self.reset_fields(),
            empty_fields: &self.empty_fields,
            versions: self,
        })
    }

    /// The fields that the strategy resets on this kind of write.
    fn reset_fields(&self) -> &'static [&'static str] {
        let resource = &self.resource.resource;
        match self.subresource {
            "" => resource.strategy.reset_fields(),
            subresource => match resource.subresource(subresource).map(|found| &found.kind) {
                Some(SubresourceKind::Object { strategy, .. }) => strategy.reset_fields(),
                _ => &[],
            },
        }
    }
}

impl ManagedWrite<'_> {
    /// The path of the replicas that the scale of this version has; `None` within for a version without scale, `None`
    /// for a version that the kind does not have.
    pub fn replicas_path(&self, version: &str) -> Option<Option<&str>> {
        let resource = &self.in_version(version)?.resource;
        Some(match &resource.subresource("scale").map(|scale| &scale.kind) {
            Some(SubresourceKind::Scale(paths)) => Some(&paths.spec_replicas),
            _ => None,
        })
    }

    /// The resource in another version of its kind. The core group and other groups do not share versions: `v1` is not
    /// a version of an event that is written through `events.k8s.io`.
    fn in_version(&self, version: &str) -> Option<&VersionedResource> {
        let is_core = |version: &str| !version.contains('/');
        let own = self.resource.resource.resource.group_version().to_string();
        if version == own {
            return Some(self.resource);
        }
        if is_core(version) != is_core(&own) {
            return None;
        }
        let versions = self.versions.get_or_init(|| self.stores.versions_of(&self.resource.resource));
        versions
            .iter()
            .find(|resource| resource.resource.resource.group_version().to_string() == version)
            .map(|found| &**found)
    }
}

impl VersionConverter for ManagedWrite<'_> {
    fn schema<'a>(&'a self, version: &str) -> Option<SchemaRef<'a>> {
        self.in_version(version).map(|resource| resource.schema.get())
    }

    fn convert<'a>(&'a self, object: &Value, from: &str, to: &str) -> Option<(Value, SchemaRef<'a>)> {
        let (from, to) = (self.in_version(from)?, self.in_version(to)?);
        let converted = match &to.resource.converter {
            Some(converter) => self.conversions.convert(converter, object, &to.resource, &to.schema)?,
            None => to.from_storage(from.to_storage(object.clone())),
        };
        Some((converted, to.schema.get()))
    }
}
