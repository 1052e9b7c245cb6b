//! Decodes stored bytes for the cache, and encodes trees for storage.
//!
//! The registry's JSON is the object as clients get it, without `metadata.resourceVersion`, which is known only after
//! the write. [`splice_revision`] inserts it after `metadata.uid`, its place in Go's field order: the bytes are copied,
//! not decoded. The result is *final JSON*, the body of a GET. [`super::StorageCodec`] converts the registry's JSON to
//! and from its stored form.

use super::{
    outline::{has_field, outline},
    revision::{inserted_revision, remove_revision, splice_revision},
};
use bytes::Bytes;
use pintle_cacher::{DecodeError, DecodedObject, ObjectDecoder, Selectable};
use pintle_machinery::{
    Value, ValueExt,
    codec::{DecodeError as CodecError, json},
};
use pintle_registry::{LazySchema, ObjectForm, Resource, SelectableField};
use pintle_schema::{Schema, SchemaRef};
use pintle_storage::{Key, Payload, Revision};
use std::sync::Arc;

/// The schema of one resource's objects.
#[derive(Clone)]
pub enum TypeSchema {
    /// A type of the built-in schema.
    Builtin(SchemaRef<'static>),
    /// The root of a resource's own schema, built on first use.
    Own(Arc<LazySchema>),
}

impl TypeSchema {
    /// A built-in type by its name.
    pub fn builtin(type_name: &str) -> Option<TypeSchema> {
        Schema::builtin().by_type_name(type_name).map(TypeSchema::Builtin)
    }

    /// The schema of a resource declaration; `None` when the built-in schema does not have its type.
    pub fn of(resource: &Resource) -> Option<TypeSchema> {
        match &resource.own_schema {
            Some(schema) => Some(TypeSchema::Own(schema.clone())),
            None => TypeSchema::builtin(&resource.type_name),
        }
    }

    /// The root node, which objects are decoded by.
    pub fn get(&self) -> SchemaRef<'_> {
        match self {
            TypeSchema::Builtin(schema) => *schema,
            TypeSchema::Own(schema) => schema.root(),
        }
    }
}

/// Decodes one resource's stored bytes and encodes its objects.
pub struct ObjectCodec {
    schema: TypeSchema,
    prefix: Arc<str>,
    namespaced: bool,
    /// Whether objects may be of other versions than the schema's.
    has_other_versions: bool,
    /// Whether objects are maps, which tell `1.0` from `1` where the encoding does.
    is_map: bool,
    fields: Vec<SelectableField>,
    /// Whether an [`outline`] has everything that selectors read.
    outlines: bool,
    /// Strings that most objects share: namespaces, label keys and values, field values.
    interned: parking_lot::Mutex<Interner>,
}

impl ObjectCodec {
    /// The codec of a resource whose storage keys begin with `prefix`.
    pub fn new(resource: &Resource, schema: TypeSchema, prefix: Arc<str>) -> ObjectCodec {
        let is_map = resource.model.form == ObjectForm::Map;
        ObjectCodec {
            schema,
            prefix,
            namespaced: resource.is_namespaced(),
            has_other_versions: resource.storage.encoding.keeps_version(),
            is_map,
            outlines: !is_map && resource.selectable_fields.iter().all(|field| has_field(&field.name)),
            fields: resource.selectable_fields.clone(),
            interned: parking_lot::Mutex::default(),
        }
    }

    /// The bytes to store: final JSON without a resourceVersion, with a newline at the end as Go's encoder writes it.
    pub fn encode(&self, object: &Value) -> Bytes {
        let mut json = json::encode(object, self.schema.get());
        json.push(b'\n');
        Bytes::from(json)
    }

    /// The parts of an object that selectors read, which the payload of its write carries to the cache.
    pub(super) fn selectable(&self, object: &Value) -> Arc<Selectable> {
        let exact = (self.is_map && has_whole_float(object)).then(|| {
            let mut object = object.clone();
            object.get_mut("metadata").map(json::open_managed_fields);
            json::encode_exact(&object).into()
        });
        let labels = object.map_at("metadata.labels").iter();
        // All writers of the resource share the lock.
        let mut interned = self.interned.lock();
        Arc::new(Selectable {
            labels: labels
                .filter_map(|(key, value)| Some((interned.get(key), interned.get(value.as_str()?))))
                .collect(),
            fields: self
                .fields
                .iter()
                .map(|field| interned.get(&(field.value)(object, &field.name)))
                .collect(),
            exact,
        })
    }

    /// The tree of an object's JSON.
    ///
    /// # Errors
    /// When the bytes are not a JSON object.
    pub fn decode_tree(&self, bytes: &[u8]) -> Result<Value, CodecError> {
        json::decode(bytes, self.schema.get()).map(|decoded| decoded.value)
    }
}

impl ObjectDecoder for ObjectCodec {
    fn decode(
        &self,
        key: &Key,
        value: &Payload,
        mod_revision: Revision,
    ) -> Result<DecodedObject, DecodeError> {
        let failed = |error: &dyn std::fmt::Display| DecodeError(error.to_string());
        let path =
            key.as_str().strip_prefix(&*self.prefix).ok_or_else(|| failed(&"key outside the resource"))?;
        let (namespace, name) = match self.namespaced {
            true => path.split_once('/').ok_or_else(|| failed(&"key without a namespace"))?,
            false => ("", path),
        };
        let selectable = match value.decoded() {
            Some(selectable) => selectable,
            None => {
                // Bytes without an outline are decoded for the reason.
                let tree = match self.outlines.then(|| outline(value, self.schema.get())).flatten() {
                    Some(outline) => Ok(outline),
                    None if self.has_other_versions => json::decode_any(value),
                    None => self.decode_tree(value),
                };
                self.selectable(&tree.map_err(|error| failed(&error))?)
            }
        };
        let json = splice_revision(value, mod_revision).ok_or_else(|| failed(&"object without metadata"))?;
        let packed = value.packed.as_deref().cloned();
        let packed = packed.and_then(|packed| inserted_revision(packed, value, &json));
        Ok(DecodedObject {
            json,
            packed,
            namespace: self.interned.lock().get(namespace),
            name: Arc::from(name),
            selectable,
        })
    }

    fn rewrite_revision(&self, json: &Bytes, revision: Revision) -> Bytes {
        remove_revision(json)
            .and_then(|bare| splice_revision(&bare, revision))
            .unwrap_or_else(|| json.clone())
    }
}

/// Whether a float is written in JSON as if it were an integer.
fn has_whole_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|float| float.fract() == 0.0),
        Value::Array(items) => items.iter().any(has_whole_float),
        Value::Object(members) => members.values().any(has_whole_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Deduplicates strings. It is cleared when full, so that values that never repeat cost bounded memory.
#[derive(Default)]
struct Interner(std::collections::HashSet<Arc<str>>);

impl Interner {
    const CAPACITY: usize = 16 * 1024;

    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return shared.clone();
        }
        if self.0.len() >= Self::CAPACITY {
            self.0.clear();
        }
        let shared: Arc<str> = Arc::from(text);
        self.0.insert(shared.clone());
        shared
    }
}
