//! Converts the registry's JSON to and from the stored forms, which are Kubernetes' own.
//!
//! ```text
//!   the registry's value                          the stored value
//!   {"kind":"Pod","apiVersion":"v1",…}\n  ──────► k8s\0 and a runtime.Unknown message   protobuf
//!                                         ──────► the same bytes                        JSON
//!                                         ──────► kind: Pod …                           YAML
//! ```
//!
//! All three forms are read, whatever form is written, in every version of the kind that upstream's scheme knows: a
//! stored object has its type metadata. The decoded value is the registry's: JSON in the storage version, with the
//! defaults that an older server did not know. It is *stale* when writing it again would store other bytes.

use super::{
    ObjectCodec, TypeSchema,
    versions::{Versions, decode_as_written},
};
use bytes::Bytes;
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupVersion, Value, ValueExt,
    codec::{cbor, json, protobuf, yaml},
    scheme::{not_registered, registered, scheme_of, unknown_conversion},
};
use pintle_registry::{Resource, StorageEncoding, StoredVersion};
use pintle_schema::{Schema, default_by_schema};
use pintle_storage::{BoxFuture, Key, Payload, ReadError, TransformError, Transformed, ValueTransformer};
use std::{borrow::Cow, str::FromStr, sync::Arc};

/// The media type of stored objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StorageMediaType {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`. Objects that are stored as written stay JSON.
    Protobuf,
    /// `application/cbor`, for objects that are stored as written
    /// ([`super::StorageFactory::maps_as_cbor`]).
    Cbor,
}

impl StorageMediaType {
    /// The media type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            StorageMediaType::Json => "application/json",
            StorageMediaType::Yaml => "application/yaml",
            StorageMediaType::Protobuf => "application/vnd.kubernetes.protobuf",
            StorageMediaType::Cbor => "application/cbor",
        }
    }
}

/// The media types that can be configured.
const CONFIGURABLE: [StorageMediaType; 3] =
    [StorageMediaType::Json, StorageMediaType::Protobuf, StorageMediaType::Yaml];

/// The name is of no media type that can be configured. The message is kube-apiserver's about its flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--storage-media-type {} invalid, allowed values: {}",
    quote(.0),
    CONFIGURABLE.map(StorageMediaType::as_str).join(", ")
)]
pub struct UnknownStorageMediaType(String);

impl FromStr for StorageMediaType {
    type Err = UnknownStorageMediaType;

    fn from_str(text: &str) -> Result<StorageMediaType, UnknownStorageMediaType> {
        let known = CONFIGURABLE.into_iter().find(|media_type| media_type.as_str() == text);
        known.ok_or_else(|| UnknownStorageMediaType(text.to_owned()))
    }
}

/// The members of metadata that identify an object.
const IDENTITY: [&str; 3] = ["name", "uid", "creationTimestamp"];

/// Reads and writes the stored forms of one resource.
pub struct StorageCodec {
    media_type: StorageMediaType,
    resource: Arc<Resource>,
    /// The apiVersion of the registry's values.
    api_version: String,
    schema: TypeSchema,
    /// The apiVersion of stored values.
    stored_api_version: String,
    stored_schema: TypeSchema,
    codec: Arc<ObjectCodec>,
    /// The first bytes of JSON that only this server can have written.
    own: Option<Vec<u8>>,
    /// The versions in which objects may be stored as written, if there are several.
    versions: Option<Arc<Versions>>,
}

impl StorageCodec {
    /// The codec of a resource. `exclusive` states that no other server writes to the engine: JSON in the storage
    /// version is then taken for the registry's own without decoding.
    pub(super) fn new(
        media_type: StorageMediaType,
        maps_as_cbor: bool,
        exclusive: bool,
        resource: Arc<Resource>,
        schema: TypeSchema,
        codec: Arc<ObjectCodec>,
        versions: Option<Arc<Versions>>,
    ) -> StorageCodec {
        let media_type = match resource.storage.encoding {
            StorageEncoding::Configured => media_type,
            StorageEncoding::AsWritten if maps_as_cbor => StorageMediaType::Cbor,
            StorageEncoding::Json | StorageEncoding::AsWritten | StorageEncoding::JsonBy(_) => {
                StorageMediaType::Json
            }
        };
        let kind = &resource.storage.kind;
        let api_version = resource.group_version_kind().group_version().to_string();
        let stored_api_version = kind.group_version().to_string();
        let same = api_version == stored_api_version;
        let stored_schema = match Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind) {
            Some(stored) if !same => TypeSchema::Builtin(stored),
            _ => schema.clone(),
        };
        // The schema of an object that is stored as written may have changed since.
        let keeps_version = resource.storage.encoding.keeps_version();
        let own = (exclusive && same && media_type == StorageMediaType::Json && !keeps_version)
            .then(|| format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", kind.kind).into_bytes());
        StorageCodec {
            media_type,
            resource,
            api_version,
            schema,
            stored_api_version,
            stored_schema,
            codec,
            own,
            versions,
        }
    }

    /// The stored form of an object, made from its tree, for the payload of its write. `None` when it is the value
    /// itself, or when there is none: the write then fails with the reason.
    pub(super) fn stored_form(&self, object: &Value) -> Option<Bytes> {
        if self.media_type == StorageMediaType::Cbor {
            return Some(cbor::encode(object, self.schema.get()).into());
        }
        if self.writes_values_as_they_are() {
            return None;
        }
        self.encode_tree(object).ok()
    }

    /// Whether values are stored as they are. Reads may still decode them by a schema that has changed.
    fn writes_values_as_they_are(&self) -> bool {
        self.resource.storage.encoding.keeps_version() || self.stores_values_as_they_are()
    }

    fn encode(&self, value: Bytes) -> Result<Bytes, String> {
        if self.media_type == StorageMediaType::Cbor {
            let object = json::decode_any(&value).map_err(|error| error.to_string())?;
            return Ok(cbor::encode(&object, self.schema.get()).into());
        }
        if self.writes_values_as_they_are() {
            return Ok(value);
        }
        let object = self.codec.decode_tree(&value).map_err(|error| error.to_string())?;
        self.encode_tree(&object)
    }

    fn encode_tree(&self, object: &Value) -> Result<Bytes, String> {
        // Kube-apiserver stores its internal records without name, UID or creation time; they are added on read only.
        let is_served = !self.resource.verbs.is_empty();
        let anonymous = (!is_served).then(|| {
            let mut object = object.clone();
            if let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|member, _| !IDENTITY.contains(&member.as_str()));
            }
            object
        });
        let object = anonymous.as_ref().unwrap_or(object);
        let kind = &self.resource.storage.kind.kind;
        let schema = self.stored_schema.get();
        let in_version = || match self.api_version == self.stored_api_version {
            true => Cow::Borrowed(object),
            false => {
                let mut object = object.clone();
                object.set("apiVersion", self.stored_api_version.as_str());
                Cow::Owned(object)
            }
        };
        let mut stored = match (self.resource.storage.encoding, self.media_type) {
            (StorageEncoding::JsonBy(encode), _) => encode(object),
            (_, StorageMediaType::Json | StorageMediaType::Cbor) => json::encode(&in_version(), schema),
            (_, StorageMediaType::Yaml) => return Ok(yaml::encode(&in_version(), schema).into()),
            (_, StorageMediaType::Protobuf) => {
                let message = protobuf::encode_message(object, schema).ok_or_else(|| {
                    let name = &self.resource.type_name;
                    format!(
                        "object *{name} does not implement the protobuf marshalling interface and cannot be \
                         encoded to a protobuf message"
                    )
                })?;
                return Ok(protobuf::seal(&self.stored_api_version, kind, &message).into());
            }
        };
        stored.push(b'\n');
        Ok(stored.into())
    }

    fn decode(&self, stored: &Bytes) -> Result<Transformed, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (form, object) = if stored.starts_with(protobuf::PREFIX) {
            let unknown = protobuf::open(stored).map_err(|error| text(&error))?;
            let (schema, older) = self.version(&unknown.api_version, &unknown.kind)?;
            let object = protobuf::decode_message(unknown.raw, schema.get()).map_err(|error| text(&error))?;
            let object = match older {
                Some(older) if older.type_name.is_empty() => {
                    return Err(format!(
                        "{} {} is not stored as protobuf",
                        unknown.api_version, unknown.kind
                    ));
                }
                Some(older) => (older.to_storage)(object),
                None => object,
            };
            (StorageMediaType::Protobuf, object)
        } else {
            // Bytes that do not start an object are parsed as YAML.
            let is_json = stored.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
            let converted;
            let (form, body) = match is_json {
                true => (StorageMediaType::Json, &stored[..]),
                false => {
                    converted = yaml::own_to_json(stored).map_err(|error| text(&error))?.json;
                    (StorageMediaType::Yaml, &converted[..])
                }
            };
            let type_meta = json::type_meta(body)
                .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
            let (schema, older) = self.version(&type_meta.api_version, &type_meta.kind)?;
            let object = match older {
                Some(older) if older.type_name.is_empty() => {
                    let object = (older.to_storage)(json::decode_any(body).map_err(|error| text(&error))?);
                    json::from_value(&object, schema.get()).map_err(|error| text(&error))?.value
                }
                Some(older) => {
                    (older.to_storage)(json::decode(body, schema.get()).map_err(|error| text(&error))?.value)
                }
                None => json::decode(body, schema.get()).map_err(|error| text(&error))?.value,
            };
            (form, object)
        };
        Ok(self.shown(stored, form, object))
    }

    /// As [`StorageCodec::decode`], for an object that is stored as written: JSON or CBOR, whatever form is written,
    /// decoded by the present schema of its stored version, and kept in that version.
    fn decode_as_written(&self, stored_form: &Bytes) -> Result<Transformed, String> {
        let form = match stored_form.starts_with(cbor::PREFIX) {
            true => StorageMediaType::Cbor,
            false => StorageMediaType::Json,
        };
        let stored = &match form {
            StorageMediaType::Cbor => {
                let object = cbor::decode_any(stored_form).map_err(|error| error.to_string())?;
                Bytes::from(json::encode_exact(&object))
            }
            _ => stored_form.clone(),
        };
        let type_meta = json::type_meta(stored)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
        if type_meta.kind != self.resource.kind {
            return Err(format!("an object of kind {} is stored here", quote(&type_meta.kind)));
        }
        let is_own = type_meta.api_version == self.api_version;
        let mut object = match &self.versions {
            Some(versions) => versions.read_stored(stored, &type_meta.api_version)?,
            None if is_own => {
                let mut object = decode_as_written(stored, &self.schema)?;
                let strategy = &self.resource.strategy;
                strategy.coerce(&mut object, false).map_err(|status| status.message)?;
                strategy.set_defaults(&mut object);
                strategy.default_on_read(&mut object);
                object
            }
            None => {
                let version = &type_meta.api_version;
                return Err(format!("request to convert CR from an invalid group/version: {version}"));
            }
        };
        if let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let value = self.codec.encode(&object);
        let is_unchanged = match self.media_type {
            StorageMediaType::Cbor => cbor::encode(&object, self.schema.get()) == *stored_form,
            _ => value == *stored,
        };
        let stale = !is_own || form != self.media_type || !is_unchanged;
        Ok(Transformed { value: self.read(value, &object), stale })
    }

    /// The registry's value of a stored object.
    fn shown(&self, stored: &Bytes, form: StorageMediaType, mut object: Value) -> Transformed {
        object.set("kind", self.resource.kind.as_str());
        object.set("apiVersion", self.api_version.as_str());
        // The resourceVersion comes from the engine; a stored one belongs to another object.
        if let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        default_by_schema(&mut object, self.schema.get());
        self.resource.strategy.set_defaults(&mut object);
        self.resource.strategy.default_on_read(&mut object);
        let value = self.codec.encode(&object);
        let again = match form == self.media_type {
            true if self.stores_values_as_they_are() => Some(value.clone()),
            true => self.encode_tree(&object).ok(),
            false => None,
        };
        let stale = again.is_none_or(|again| again != *stored);
        Transformed { value: self.read(value, &object), stale }
    }

    /// A value with the contents of its object, so that the cache need not decode it again.
    fn read(&self, value: Bytes, object: &Value) -> Payload {
        Payload::new(value, None, Some(self.codec.selectable(object)))
    }

    /// The schema of a stored object's version, and its conversion to the storage version.
    fn version(&self, api_version: &str, kind: &str) -> Result<(TypeSchema, Option<&StoredVersion>), String> {
        if kind == self.resource.kind && api_version == self.api_version {
            return Ok((self.schema.clone(), None));
        }
        if kind.is_empty() {
            return Err("Object 'Kind' is missing".to_owned());
        }
        let version = GroupVersion::parse(api_version)
            .ok_or_else(|| format!("unexpected GroupVersion string: {api_version}"))?;
        let of_kind = version.with_kind(kind.to_owned());
        if let Some(older) = self.resource.stored_versions.iter().find(|older| older.kind == of_kind) {
            let schema = TypeSchema::builtin(&older.type_name);
            return Ok((schema.unwrap_or_else(|| self.schema.clone()), Some(older)));
        }
        let scheme = scheme_of(&self.resource.resource.group);
        Err(match registered(&of_kind, scheme) {
            Some(other) => {
                let own = self.schema.get();
                let own_group = own.package().rsplit('/').nth(1).unwrap_or_default();
                unknown_conversion(other, &format!("{own_group}.{}", own.name()))
            }
            None => not_registered(kind, api_version, scheme),
        })
    }
}

impl ValueTransformer for StorageCodec {
    fn to_storage<'a>(&'a self, _: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>> {
        Box::pin(std::future::ready(self.encode(value).map_err(TransformError)))
    }

    fn from_storage<'a>(
        &'a self,
        _: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        let decoded = match self.resource.storage.encoding {
            StorageEncoding::AsWritten => self.decode_as_written(&stored),
            StorageEncoding::Configured | StorageEncoding::Json | StorageEncoding::JsonBy(_) => {
                self.decode(&stored)
            }
        };
        Box::pin(std::future::ready(decoded.map_err(TransformError)))
    }

    fn read_error(&self, error: TransformError) -> ReadError {
        ReadError::Decode(error)
    }

    fn stores_values_as_they_are(&self) -> bool {
        self.media_type == StorageMediaType::Json
            && self.api_version == self.stored_api_version
            && matches!(self.resource.storage.encoding, StorageEncoding::Configured | StorageEncoding::Json)
    }

    fn is_plain(&self, stored: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| stored.starts_with(own))
    }
}
