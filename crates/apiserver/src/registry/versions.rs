//! Converts between the versions of a resource whose objects are stored as written.
//!
//! The endpoints convert built-in kinds by functions, and the registry uses their storage version alone. A version of a
//! custom resource has its own schema, defaults and rules, and a conversion may call a webhook: there the registry uses
//! the version of the request, and the store converts.
//!
//! An object is cached as it is stored: in the version that was the storage version when it was written. A conversion
//! to the present storage version on the way would lose the fields that only its own version has.

use super::{TypeSchema, revision::api_version_of};
use bytes::Bytes;
use pintle_machinery::{Map, Status, Value, ValueExt, codec::json};
use pintle_registry::{Converter, Resource};
use std::sync::Arc;

/// All versions in which objects may be stored, and the converter between them.
pub(super) struct Versions {
    converter: Arc<dyn Converter>,
    all: Vec<Version>,
}

struct Version {
    api_version: String,
    resource: Arc<Resource>,
    schema: TypeSchema,
}

impl Versions {
    /// The versions of a resource; `None` for a resource with one version.
    pub(super) fn new(resource: &Resource, all: &[Arc<Resource>]) -> Option<Versions> {
        let converter = resource.converter.clone()?;
        let all = all.iter().filter_map(|resource| {
            Some(Version {
                api_version: resource.resource.group_version().to_string(),
                schema: TypeSchema::of(resource)?,
                resource: resource.clone(),
            })
        });
        Some(Versions { converter, all: all.collect() })
    }

    fn find(&self, api_version: &str) -> Option<&Version> {
        self.all.iter().find(|version| version.api_version == api_version)
    }

    /// Decodes a stored object by the schema of its stored version.
    ///
    /// # Errors
    /// When that version no longer exists, or the bytes are not such an object.
    pub(super) fn read_stored(&self, stored: &[u8], api_version: &str) -> Result<Value, String> {
        let version = self
            .find(api_version)
            .ok_or_else(|| format!("request to convert CR from an invalid group/version: {api_version}"))?;
        let mut object = decode_as_written(stored, &version.schema)?;
        let strategy = &version.resource.strategy;
        strategy.coerce(&mut object, false).map_err(|status| status.message)?;
        strategy.set_defaults(&mut object);
        strategy.default_on_read(&mut object);
        object.set("apiVersion", api_version);
        Ok(object)
    }

    /// Decodes JSON and converts the object to the version of a declaration.
    ///
    /// # Errors
    /// 500 when the bytes are not an object, and the errors of the converter.
    pub(super) async fn read(
        &self,
        json: &[u8],
        to: &Resource,
        schema: &TypeSchema,
    ) -> Result<Value, Status> {
        if is_of_version(json, to) {
            return Ok(json::decode(json, schema.get()).map_err(Status::internal_error)?.value);
        }
        let object = json::decode_any(json).map_err(Status::internal_error)?;
        let converted = convert_stored(&*self.converter, vec![object], to, schema).await?.pop();
        converted.ok_or_else(|| Status::internal_error("a conversion without an answer"))
    }

    /// Converts an object to the version of another declaration.
    ///
    /// # Errors
    /// Those of the converter.
    pub(super) async fn convert(
        &self,
        object: Value,
        to: &Resource,
        schema: &TypeSchema,
    ) -> Result<Value, Status> {
        if object.str_at("apiVersion") == to.resource.group_version().to_string() {
            return Ok(object);
        }
        convert_one(&*self.converter, object, to, schema).await
    }
}

/// Decodes an object that is stored as written. The members of its metadata that have wrong types are dropped: another
/// program may have written them, and the object could not be deleted otherwise.
///
/// # Errors
/// When the bytes are not an object of the schema.
pub(super) fn decode_as_written(stored: &[u8], schema: &TypeSchema) -> Result<Value, String> {
    let error = match json::decode(stored, schema.get()) {
        Ok(decoded) => return Ok(decoded.value),
        Err(error) => error.to_string(),
    };
    let mut object = json::decode_any(stored).map_err(|_| error.clone())?;
    drop_mistyped_metadata(&mut object, schema);
    json::from_value(&object, schema.get()).map(|decoded| decoded.value).map_err(|_| error)
}

/// Whether an object's JSON has the apiVersion of a declaration.
pub(crate) fn is_of_version(json: &[u8], resource: &Resource) -> bool {
    let id = &resource.resource;
    let version = api_version_of(json).and_then(|own| own.strip_prefix(id.group.as_bytes()));
    version.and_then(|own| own.strip_prefix(b"/")) == Some(id.version.as_bytes())
}

/// Encodes the final JSON of an object in a version.
pub(super) fn encode(object: &Value, schema: &TypeSchema) -> Bytes {
    let mut json = json::encode(object, schema.get());
    json.push(b'\n');
    json.into()
}

/// Converts an object of a request, which has unknown fields until it is stored: admission may have added them, and sees
/// them. Only the metadata is normalized.
///
/// # Errors
/// Those of the converter.
pub(super) async fn convert_unpruned(
    converter: &dyn Converter,
    object: Value,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Value, Status> {
    let converted = converter.convert(vec![object], &to.resource.group_version()).await?.pop();
    let mut object = converted.ok_or_else(|| Status::internal_error("a conversion without an answer"))?;
    keep_declared_metadata(&mut object, schema)?;
    Ok(object)
}

/// Removes the unknown fields of an object's metadata, but none of its content.
///
/// # Errors
/// 500 when a declared field has the wrong type.
pub(crate) fn keep_declared_metadata(object: &mut Value, schema: &TypeSchema) -> Result<(), Status> {
    let Some(members) = object.as_object_mut() else { return Ok(()) };
    if let Some(metadata) = members.remove("metadata") {
        let bare = Value::Object(Map::from_iter([("metadata".to_owned(), metadata)]));
        let mut declared = json::from_value(&bare, schema.get()).map_err(Status::internal_error)?.value;
        if let Some(metadata) = declared.remove_at("metadata") {
            members.insert("metadata", metadata);
        }
    }
    Ok(())
}

/// Removes the members of an object's metadata that have wrong types, and of labels and annotations those that are no
/// texts. A webhook or policy may leave them; objects are stored, and answered, without them.
pub(crate) fn drop_malformed_metadata(object: &mut Value, schema: &TypeSchema) {
    for name in ["metadata.labels", "metadata.annotations"] {
        if let Some(texts) = object.at_mut(name).and_then(Value::as_object_mut) {
            texts.retain(|_, value| value.is_string());
        }
    }
    drop_mistyped_metadata(object, schema);
}

/// Removes the members of an object's metadata that have wrong types.
fn drop_mistyped_metadata(object: &mut Value, schema: &TypeSchema) {
    let is_typed = |name: &str, value: &Value| {
        let bare = Map::from_iter([(name.to_owned(), value.clone())]);
        let bare = Value::Object(Map::from_iter([("metadata".to_owned(), Value::Object(bare))]));
        json::from_value(&bare, schema.get()).is_ok()
    };
    let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|name, value| is_typed(name, value));
}

/// As [`convert`], for one object.
///
/// # Errors
/// Those of the converter.
pub(super) async fn convert_one(
    converter: &dyn Converter,
    object: Value,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Value, Status> {
    let converted = convert(converter, vec![object], to, schema).await?.pop();
    converted.ok_or_else(|| Status::internal_error("a conversion without an answer"))
}

/// As [`convert`], for objects of the store. The converter gets them as they are stored: without a resourceVersion.
///
/// # Errors
/// Those of the converter.
pub(crate) async fn convert_stored(
    converter: &dyn Converter,
    mut objects: Vec<Value>,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Vec<Value>, Status> {
    const PATH: &str = "metadata.resourceVersion";
    let revisions: Vec<_> = objects.iter_mut().map(|object| object.remove_at(PATH)).collect();
    let mut converted = convert(converter, objects, to, schema).await?;
    for (object, revision) in converted.iter_mut().zip(revisions) {
        if let Some(revision) = revision {
            object.set(PATH, revision);
        }
    }
    Ok(converted)
}

/// Converts objects from other versions, and normalizes them by the schema of the target version.
///
/// # Errors
/// Those of the converter.
async fn convert(
    converter: &dyn Converter,
    objects: Vec<Value>,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Vec<Value>, Status> {
    let mut converted = convert_declared(converter, objects, to, schema).await?;
    for object in &mut converted {
        to.strategy.coerce(object, false)?;
    }
    Ok(converted)
}

/// Converts an object that a client applies. Unknown fields are removed, but a `null` stays, for validation to see.
///
/// # Errors
/// Those of the converter.
pub(super) async fn convert_applied(
    converter: &dyn Converter,
    object: Value,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Value, Status> {
    let converted = convert_declared(converter, vec![object], to, schema).await?.pop();
    converted.ok_or_else(|| Status::internal_error("a conversion without an answer"))
}

/// Converts objects from other versions, and removes the fields that the target version does not declare.
async fn convert_declared(
    converter: &dyn Converter,
    objects: Vec<Value>,
    to: &Resource,
    schema: &TypeSchema,
) -> Result<Vec<Value>, Status> {
    let expected = objects.len();
    let converted = converter.convert(objects, &to.resource.group_version()).await?;
    if converted.len() != expected {
        return Err(Status::internal_error("a conversion that answers for other objects"));
    }
    let declared = converted.iter().map(|object| json::from_value(object, schema.get()));
    declared.map(|object| Ok(object.map_err(Status::internal_error)?.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::{SameContent, Scope, Strategy};
    use std::sync::Arc;

    /// Drops a `null`, as custom resources do when they are read.
    struct WithoutNull;

    impl Strategy for WithoutNull {
        fn coerce(&self, object: &mut Value, _is_request: bool) -> Result<Vec<String>, Status> {
            object.remove_at("data");
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn what_a_client_applies_keeps_its_nulls_in_other_versions() {
        let type_name = "k8s.io/api/core/v1.ConfigMap";
        let schema = TypeSchema::builtin(type_name).unwrap();
        let mut to = Resource::new("", "v2", "kinds", "kind", "Kind", Scope::Namespaced, type_name);
        to.strategy = Arc::new(WithoutNull);
        let object = json!({"apiVersion": "v1", "data": {"a": "b"}, "unknown": 1});
        let applied = convert_applied(&SameContent, object.clone(), &to, &schema).await.unwrap();
        assert_eq!(applied, json!({"apiVersion": "v2", "data": {"a": "b"}}));
        let read = convert_one(&SameContent, object, &to, &schema).await.unwrap();
        assert_eq!(read, json!({"apiVersion": "v2"}));
    }

    #[test]
    fn stored_metadata_loses_what_has_the_wrong_type() {
        let schema = TypeSchema::builtin("k8s.io/api/core/v1.ConfigMap").unwrap();
        let stored = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":null,
            "labels":{"bad":"x y"},"annotations":{"a":1,"b":"c"},"unknown":1}}"#;
        let object = decode_as_written(stored, &schema).unwrap();
        assert_eq!(object["metadata"], json!({"name": "a", "labels": {"bad": "x y"}}));
        let error = decode_as_written(br#"{"metadata":{"name":"a"},"data":{"a":1}}"#, &schema).unwrap_err();
        assert!(error.contains("ConfigMap.data"), "{error}");
        assert!(decode_as_written(b"{", &schema).is_err());
    }
}
