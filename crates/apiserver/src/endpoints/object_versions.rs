//! The objects of a request in the versions of its resource, for admission.

use super::request_scope::RequestScope;
use crate::registry::{VersionedResource, drop_malformed_metadata, keep_declared_metadata};
use pintle_admission::{Endpoint, RequestVersions};
use pintle_machinery::{GroupVersionKind, Status, Value, codec::json};
use pintle_registry::{Backing, BoxFuture, NamedCreater, SubresourceKind};
use pintle_schema::{Schema, SchemaRef, default_by_schema};
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// The versions of a request's resource, or the one version of a subresource's own kind.
pub(super) struct ObjectVersions<'a> {
    scope: &'a RequestScope<'a>,
    kind: &'a GroupVersionKind,
    /// Whether the objects are those of the resource, and not the bodies of a subresource.
    has_own_kind: bool,
    /// All versions of the resource, once they are asked for.
    all: OnceLock<Vec<Arc<VersionedResource>>>,
}

impl<'a> ObjectVersions<'a> {
    /// The versions of the request's objects, which are of `kind`.
    pub(super) fn new(scope: &'a RequestScope<'a>, kind: &'a GroupVersionKind) -> ObjectVersions<'a> {
        let resource = &scope.resource.resource;
        let has_own_kind = resource.kind == kind.kind
            && resource.resource.version == kind.version
            && resource.resource.group == kind.group;
        ObjectVersions { scope, kind, has_own_kind, all: OnceLock::new() }
    }

    fn all(&self) -> &[Arc<VersionedResource>] {
        self.all.get_or_init(|| {
            let resource = &self.scope.resource.resource;
            let mut all = self.scope.server.stores.versions_of(resource);
            let subresource = &self.scope.info.subresource;
            all.retain(|other| subresource.is_empty() || other.resource.subresource(subresource).is_some());
            match all.is_empty() {
                // Resources without storage are not among the stored ones.
                true => vec![self.scope.resource.clone()],
                false => all,
            }
        })
    }

    /// The version of the resource that a kind belongs to.
    fn version(&self, kind: &GroupVersionKind) -> Result<&Arc<VersionedResource>, Status> {
        if self.has_own_kind && kind == self.kind {
            return Ok(self.scope.resource);
        }
        let is_wanted = |other: &&Arc<VersionedResource>| other.resource.group_version_kind() == *kind;
        self.all().iter().find(is_wanted).filter(|_| self.has_own_kind).ok_or_else(|| {
            Status::internal_error(format!("{} is no version of {}", kind.kind, self.kind.kind))
        })
    }

    /// Serves the create of this subresource, or of this resource without storage.
    fn creater(&self) -> Option<&dyn NamedCreater> {
        let resource = &self.scope.resource.resource;
        if let Backing::Creater(creater) = &resource.backing {
            return Some(&**creater);
        }
        match &resource.subresource(&self.scope.info.subresource)?.kind {
            SubresourceKind::Create { creater, .. } => Some(&**creater),
            _ => None,
        }
    }

    async fn decode(&self, bytes: &[u8], kind: &GroupVersionKind) -> Result<Value, Status> {
        let schema = self.schema(kind).ok_or_else(Status::no_such_resource)?;
        let decoded = json::decode_body(bytes, schema);
        // Custom resources are decoded once more, without their types.
        let is_malformed = decoded.is_err() && self.has_own_kind && schema.is_structural();
        let mut object = match decoded {
            Err(_) if is_malformed => Value::Null,
            decoded => decoded.map_err(Status::internal_error)?.value,
        };
        if !self.has_own_kind || self.creater().is_some() {
            default_by_schema(&mut object, schema);
            if let Some(creater) = self.creater() {
                creater.set_defaults(&mut object);
            }
            return Ok(object);
        }
        let version = self.version(kind)?;
        match version.resource.model.keeps_unknown_fields() {
            true => {
                object = json::decode_any_body(bytes).map_err(Status::internal_error)?;
                let stored_as_requested = self.scope.resource.slot == 0;
                if is_malformed && stored_as_requested {
                    drop_malformed_metadata(&mut object, &version.schema);
                }
                keep_declared_metadata(&mut object, &version.schema)?;
            }
            false => drop(version.resource.strategy.coerce(&mut object, false)?),
        }
        if version.resource.converter.is_some() {
            version.resource.strategy.set_defaults(&mut object);
        }
        let mut object = match version.resource.converter.is_some() {
            true => self.scope.resource.converted(&object).await?.into_owned(),
            false => version.to_storage(object),
        };
        if let Ok(store) = self.scope.store() {
            store.set_defaults(&mut object);
        }
        Ok(object)
    }
}

impl RequestVersions for ObjectVersions<'_> {
    fn equivalents(&self) -> Vec<Endpoint> {
        let endpoint = |version: &Arc<VersionedResource>| Endpoint {
            resource: version.resource.resource.clone(),
            subresource: self.scope.info.subresource.clone(),
            kind: match self.has_own_kind {
                true => version.resource.group_version_kind(),
                false => self.kind.clone(),
            },
        };
        self.all().iter().map(endpoint).collect()
    }

    fn schema(&self, kind: &GroupVersionKind) -> Option<SchemaRef<'_>> {
        match self.has_own_kind {
            true => self.version(kind).ok().map(|version| version.schema.get()),
            false => Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind),
        }
    }

    fn to_version<'a>(
        &'a self,
        object: &'a Value,
        kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Cow<'a, Value>, Status>> {
        Box::pin(async move {
            match self.has_own_kind {
                true => self.version(kind)?.converted(object).await,
                false => Ok(Cow::Borrowed(object)),
            }
        })
    }

    fn encode(&self, object: &Value, kind: &GroupVersionKind) -> Result<Vec<u8>, Status> {
        Ok(json::encode(object, self.schema(kind).ok_or_else(Status::no_such_resource)?))
    }

    fn read_version<'a>(
        &'a self,
        json: &'a [u8],
        kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.decode(json, kind))
    }
}
