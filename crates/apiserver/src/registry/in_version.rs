//! A version of a custom resource that is not the stored one.
//!
//! Versions of built-in kinds are converted at the edge, by functions, and the registry speaks the storage version alone.
//! A version of a custom resource has a schema, defaults and rules of its own, and the way to the stored one may lead
//! through a webhook: there the registry speaks the version of the request, and the store converts.

use super::TypeSchema;
use bytes::Bytes;
use futures_util::FutureExt;
use pintle_machinery::{Status, Value, ValueExt, codec::json};
use pintle_registry::{Converter, Resource};
use std::sync::Arc;
use tokio::runtime::Handle;

/// How objects get from the storage version to another one and back.
pub(super) struct InVersion {
    converter: Arc<dyn Converter>,
    own: Arc<Resource>,
    own_schema: TypeSchema,
    stored: Arc<Resource>,
    stored_schema: TypeSchema,
}

impl InVersion {
    /// `None` when the resource does not say how its versions are converted.
    pub(super) fn new(
        resource: &Arc<Resource>,
        stored: &Arc<Resource>,
        own_schema: &TypeSchema,
        stored_schema: &TypeSchema,
    ) -> Option<InVersion> {
        Some(InVersion {
            converter: resource.converter.clone()?,
            own: resource.clone(),
            own_schema: own_schema.clone(),
            stored: stored.clone(),
            stored_schema: stored_schema.clone(),
        })
    }

    /// An object of the storage version in this one.
    pub(super) async fn read(&self, object: Value) -> Result<Value, Status> {
        convert_one(&*self.converter, object, &self.own, &self.own_schema).await
    }

    /// An object of this version in the storage version.
    pub(super) async fn write(&self, object: Value) -> Result<Value, Status> {
        convert_one(&*self.converter, object, &self.stored, &self.stored_schema).await
    }

    /// Final JSON of this version.
    pub(super) fn encode(&self, object: &Value) -> Bytes {
        let mut json = json::encode(object, self.own_schema.get());
        json.push(b'\n');
        json.into()
    }
}

async fn convert_one(
    converter: &dyn Converter,
    object: Value,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Value, Status> {
    let converted = convert(converter, vec![object], to, schema).await?.pop();
    converted.ok_or_else(|| Status::internal_error("a conversion without an answer"))
}

/// Converts objects that are not of the version yet, and brings them into the shape that its schema wants.
///
/// # Errors
/// Those of the converter.
pub(crate) async fn convert(
    converter: &dyn Converter,
    objects: Vec<Value>,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Vec<Value>, Status> {
    let expected = objects.len();
    let group_version = to.resource.group_version();
    let version = group_version.to_string();
    let converted = match objects.iter().all(|object| object.str_at("apiVersion") == version) {
        true => objects,
        false => converter.convert(objects, &group_version).await?,
    };
    if converted.len() != expected {
        return Err(Status::internal_error("a conversion that answers for other objects"));
    }
    let mut shaped = Vec::with_capacity(expected);
    for object in &converted {
        let mut object = json::from_value(object, schema.get()).map_err(Status::internal_error)?.value;
        to.strategy.coerce(&mut object, false)?;
        shaped.push(object);
    }
    Ok(shaped)
}

/// The same for code that cannot wait: what is ready at once is, and otherwise the thread waits.
pub(crate) fn convert_now(
    converter: &dyn Converter,
    object: Value,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Value, Status> {
    if let Some(converted) = convert_one(converter, object.clone(), to, schema).now_or_never() {
        return converted;
    }
    let runtime = Handle::try_current().map_err(Status::internal_error)?;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| runtime.block_on(convert_one(converter, object, to, schema)));
        waiting.join().unwrap_or_else(|_| Err(Status::internal_error("a conversion panicked")))
    })
}
