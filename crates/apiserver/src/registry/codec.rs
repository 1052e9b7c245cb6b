//! From stored bytes to what the cache keeps, and from trees to stored bytes.
//!
//! Stored JSON is the object as clients get it, without `metadata.resourceVersion`, which is known only once the write
//! is done. [`splice_revision`] puts it in behind `metadata.uid`, where Go's field order wants it, and ends the text with
//! the newline that Go's encoder ends it with: a copy of the bytes, but no decoding. The result is *final JSON*: what a
//! GET answers.

use bytes::{Bytes, BytesMut};
use pintle_cacher::{DecodeError, DecodedObject, Labels, ObjectDecoder};
use pintle_machinery::{
    Value,
    codec::{DecodeError as CodecError, json},
};
use pintle_registry::{Resource, SelectableField};
use pintle_schema::{Schema, SchemaRef};
use pintle_storage::{Key, Revision};
use serde::Deserialize;
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The schema of one resource's objects, owned.
#[derive(Clone)]
pub enum TypeSchema {
    /// A type of the built-in schema.
    Builtin(SchemaRef<'static>),
    /// The root of a schema of its own.
    Custom(Arc<Schema>),
}

impl TypeSchema {
    /// A built-in type by its name.
    pub fn builtin(type_name: &str) -> Option<TypeSchema> {
        Schema::builtin().by_type_name(type_name).map(TypeSchema::Builtin)
    }

    /// The node that objects are read by.
    pub fn get(&self) -> SchemaRef<'_> {
        match self {
            TypeSchema::Builtin(schema) => *schema,
            TypeSchema::Custom(schema) => schema.root(),
        }
    }
}

/// Turns one resource's stored bytes into objects and back.
pub struct ObjectCodec {
    schema: TypeSchema,
    prefix: Arc<str>,
    namespaced: bool,
    fields: Vec<SelectableField>,
    /// Texts that most objects share: namespaces, label keys and values, field values.
    interned: parking_lot::Mutex<Interner>,
}

impl ObjectCodec {
    /// The codec of a resource whose storage keys begin with `prefix`.
    pub fn new(resource: &Resource, schema: TypeSchema, prefix: Arc<str>) -> ObjectCodec {
        ObjectCodec {
            schema,
            prefix,
            namespaced: resource.is_namespaced(),
            fields: resource.selectable_fields.clone(),
            interned: parking_lot::Mutex::default(),
        }
    }

    /// The bytes to store: final JSON without a resourceVersion.
    pub fn encode(&self, object: &Value) -> Bytes {
        Bytes::from(json::encode(object, self.schema.get()))
    }

    /// The tree of an object's JSON.
    ///
    /// # Errors
    /// When the bytes are no JSON object.
    pub fn decode_tree(&self, bytes: &[u8]) -> Result<Value, CodecError> {
        json::decode(bytes, self.schema.get()).map(|decoded| decoded.value)
    }
}

impl ObjectDecoder for ObjectCodec {
    fn decode(&self, key: &Key, value: &Bytes, mod_revision: Revision) -> Result<DecodedObject, DecodeError> {
        let failed = |error: &dyn std::fmt::Display| DecodeError(error.to_string());
        let path =
            key.as_str().strip_prefix(&*self.prefix).ok_or_else(|| failed(&"key outside the resource"))?;
        let (namespace, name) = match self.namespaced {
            true => path.split_once('/').ok_or_else(|| failed(&"key without a namespace"))?,
            false => ("", path),
        };
        let labels: Labels;
        let fields: Box<[Arc<str>]>;
        if self.fields.is_empty() {
            let head: Head<'_> = serde_json::from_slice(value).map_err(|error| failed(&error))?;
            let mut interned = self.interned.lock();
            let pairs = head.metadata.labels.unwrap_or_default();
            labels = pairs.iter().map(|(key, value)| (interned.get(key), interned.get(value))).collect();
            fields = Box::default();
        } else {
            let tree = self.decode_tree(value).map_err(|error| failed(&error))?;
            let mut interned = self.interned.lock();
            let pairs =
                tree.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
            labels = pairs
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((interned.get(key), interned.get(value.as_str()?))))
                .collect();
            fields =
                self.fields.iter().map(|field| interned.get(&(field.value)(&tree, &field.name))).collect();
        }
        Ok(DecodedObject {
            json: splice_revision(value, mod_revision)
                .ok_or_else(|| failed(&"object without metadata.uid"))?,
            namespace: self.interned.lock().get(namespace),
            name: Arc::from(name),
            labels,
            fields,
        })
    }

    fn rewrite_revision(&self, json: &Bytes, revision: Revision) -> Bytes {
        remove_revision(json)
            .and_then(|bare| splice_revision(&bare, revision))
            .unwrap_or_else(|| json.clone())
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: HeadMeta<'a>,
}

#[derive(Deserialize)]
struct HeadMeta<'a> {
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

const UID: &[u8] = b"\"uid\":\"";
const RESOURCE_VERSION: &[u8] = b",\"resourceVersion\":\"";

/// Where in an object's JSON the resourceVersion stands or would stand: just behind `metadata.uid`.
///
/// Before `metadata.uid` come only the kind, the apiVersion and the names, whose quotes would be escaped: the first
/// `"uid":"` is the object's own.
fn revision_position(json: &[u8]) -> Option<usize> {
    let start = memchr::memmem::find(json, UID)? + UID.len();
    let length = memchr::memchr(b'"', json.get(start..)?)?;
    Some(start + length + 1)
}

/// The final JSON of a stored object; `None` when the object has no uid.
pub fn splice_revision(json: &[u8], revision: Revision) -> Option<Bytes> {
    let at = revision_position(json)?;
    let (head, tail) = json.split_at_checked(at)?;
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(revision.0);
    let mut out = BytesMut::with_capacity(json.len() + RESOURCE_VERSION.len() + digits.len() + 2);
    out.extend_from_slice(head);
    out.extend_from_slice(RESOURCE_VERSION);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(b"\"");
    out.extend_from_slice(tail);
    out.extend_from_slice(b"\n");
    Some(out.freeze())
}

/// The stored form of final JSON.
pub fn remove_revision(json: &[u8]) -> Option<Bytes> {
    let json = json.strip_suffix(b"\n").unwrap_or(json);
    let at = revision_position(json)?;
    let (head, tail) = json.split_at_checked(at)?;
    let Some(rest) = tail.strip_prefix(RESOURCE_VERSION) else { return Some(Bytes::copy_from_slice(json)) };
    let end = memchr::memchr(b'"', rest)? + 1;
    let mut out = BytesMut::with_capacity(json.len());
    out.extend_from_slice(head);
    out.extend_from_slice(rest.get(end..)?);
    Some(out.freeze())
}

/// Shares equal texts. Forgets all of them when there are too many, so that values that never repeat cost a bounded
/// amount of memory.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_goes_in_and_out_behind_the_uid() {
        let bare = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\"uid\":\"","uid":"1-2","labels":{"uid":"x"}}}"#;
        let spliced = splice_revision(bare, Revision(42)).unwrap();
        assert_eq!(
            std::str::from_utf8(&spliced).unwrap(),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\"uid\":\"","uid":"1-2","resourceVersion":"42","labels":{"uid":"x"}}}
"#
        );
        assert_eq!(remove_revision(&spliced).unwrap(), &bare[..]);
        assert_eq!(remove_revision(bare).unwrap(), &bare[..]);
        assert_eq!(splice_revision(b"{}", Revision(1)), None);
    }
}
