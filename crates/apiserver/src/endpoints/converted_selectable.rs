//! Labels and selectable fields of objects that are stored in another version than the request's.
//!
//! A conversion webhook may rename fields and change labels, so that selectors are matched against the converted object.
//! Its labels and fields are kept beside the object, as its converted JSON is.

use super::encoder::{convert, made_json, selectable_representation};
use crate::registry::{VersionedResource, is_of_version};
use bytes::{BufMut as _, Bytes};
use pintle_cacher::CachedObject;
use pintle_machinery::{Status, Value, ValueExt, codec::json};
use pintle_offload::weigh;
use pintle_registry::Resource;
use std::sync::Arc;

/// The labels and selectable fields of objects in the version of a request.
pub(super) struct ConvertedSelectable(Arc<VersionedResource>);

impl ConvertedSelectable {
    /// `None` for a resource whose objects have the same labels and fields in all versions.
    pub(super) fn of(resource: &Arc<VersionedResource>) -> Option<ConvertedSelectable> {
        let converter = resource.resource.converter.as_ref()?;
        (!converter.keeps_content()).then(|| ConvertedSelectable(resource.clone()))
    }

    /// Converts the objects that are of other versions. Call it before [`ConvertedSelectable::read`].
    ///
    /// # Errors
    /// When an object cannot be converted.
    pub(super) async fn prepare(&self, mut objects: Vec<Arc<CachedObject>>) -> Result<(), Status> {
        let resource = &self.0;
        let id = selectable_representation(resource);
        objects.retain(|object| {
            object.existing_representation(id).is_none() && !is_of_version(&object.json(), &resource.resource)
        });
        weigh(objects.iter().map(|object| object.size()).sum()).await;
        convert(resource, &objects).await?;
        for object in &objects {
            object.representation(id, || {
                let json = made_json(resource, object)
                    .ok_or_else(|| Status::internal_error("an object that was not converted"))?;
                let tree = json::decode_any(&json).map_err(Status::internal_error)?;
                Ok::<_, Status>(encode(&resource.resource, &tree))
            })?;
        }
        Ok(())
    }

    /// The encoded labels and fields of an object of another version; `None` for one of the request's version, which is
    /// cached as it is.
    pub(super) fn read(&self, object: &CachedObject) -> Option<Bytes> {
        object.existing_representation(selectable_representation(&self.0))
    }

    /// The texts that [`ConvertedSelectable::read`] has returned.
    pub(super) fn parts<'a>(&self, bytes: &'a [u8]) -> Parts<'a> {
        let mut texts = Texts(bytes);
        let fields = texts.by_ref().take(self.0.resource.selectable_fields.len()).collect();
        let mut labels = Vec::new();
        while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
            labels.push((key, value));
        }
        Parts { fields, labels }
    }
}

/// The labels and selectable fields of one object.
pub(super) struct Parts<'a> {
    /// The values of the fields, in the order of the declaration.
    pub(super) fields: Vec<&'a str>,
    /// The labels, sorted by key.
    pub(super) labels: Vec<(&'a str, &'a str)>,
}

/// The values of the fields, and after them the keys and values of the labels.
fn encode(resource: &Resource, object: &Value) -> Bytes {
    let mut bytes = Vec::new();
    let mut put = |text: &str| {
        bytes.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        bytes.put_slice(text.as_bytes());
    };
    for field in &resource.selectable_fields {
        put(&(field.value)(object, &field.name));
    }
    for (key, value) in object.map_at("metadata.labels") {
        if let Some(value) = value.as_str() {
            put(key);
            put(value);
        }
    }
    bytes.into()
}

/// Texts with their lengths in front.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}
