//! From stored bytes to what the cache keeps, and from trees to stored bytes.
//!
//! The registry's JSON is the object as clients get it, without `metadata.resourceVersion`, which is known only once the write
//! is done. [`splice_revision`] puts it in behind `metadata.uid`, where Go's field order wants it: a copy of the bytes, but
//! no decoding. The result is *final JSON*: what a GET answers. In which form that JSON is stored is the business of
//! [`super::StorageCodec`].

use bytes::{Bytes, BytesMut};
use pintle_cacher::{DecodeError, DecodedObject, Labels, ObjectDecoder};
use pintle_machinery::{
    Value, ValueExt,
    codec::{DecodeError as CodecError, json},
};
use pintle_registry::{Resource, SelectableField};
use pintle_schema::{Schema, SchemaRef};
use pintle_storage::{Key, Revision};
use std::{collections::VecDeque, sync::Arc};

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
    /// What selectors need of objects that this process has just written.
    written: Announced,
    /// The same of those that were just read from another form than the registry's.
    read: Announced,
}

/// What selectors need of some objects, by their bytes.
#[derive(Default)]
struct Announced(parking_lot::Mutex<VecDeque<(Bytes, Selectable)>>);

impl Announced {
    fn announce(&self, bytes: &Bytes, selectable: Selectable, capacity: usize) {
        let mut announced = self.0.lock();
        if announced.len() >= capacity {
            // Left by a write that failed, or a read that was for nothing.
            announced.pop_front();
        }
        announced.push_back((bytes.clone(), selectable));
    }

    fn take(&self, bytes: &Bytes) -> Option<Selectable> {
        let mut announced = self.0.lock();
        // The entry keeps the bytes alive, so that no others can be at their address.
        let same = |kept: &Bytes| kept.as_ptr() == bytes.as_ptr() && kept.len() == bytes.len();
        let at = announced.iter().position(|(kept, _)| same(kept))?;
        announced.remove(at).map(|(_, selectable)| selectable)
    }
}

/// What selectors need of an object.
struct Selectable {
    labels: Labels,
    fields: Box<[Arc<str>]>,
}

/// How many writes may be between encoding and the cache, and how large an object is kept for that long: what is over
/// is decoded again.
const WRITES_KEPT: usize = 64;
const WRITTEN_BYTES_KEPT: usize = 64 * 1024;
/// How many reads may be between: a page of the list that fills the cache.
const READS_KEPT: usize = 500;

impl ObjectCodec {
    /// The codec of a resource whose storage keys begin with `prefix`.
    pub fn new(resource: &Resource, schema: TypeSchema, prefix: Arc<str>) -> ObjectCodec {
        ObjectCodec {
            schema,
            prefix,
            namespaced: resource.is_namespaced(),
            fields: resource.selectable_fields.clone(),
            interned: parking_lot::Mutex::default(),
            written: Announced::default(),
            read: Announced::default(),
        }
    }

    /// The bytes to store: final JSON without a resourceVersion, ended by a newline as Go's encoder does.
    pub fn encode(&self, object: &Value) -> Bytes {
        let mut json = json::encode(object, self.schema.get());
        json.push(b'\n');
        Bytes::from(json)
    }

    /// Says that these bytes, made of this tree, are about to be stored. An engine in this process hands the same bytes
    /// to the cache, which then need not be decoded.
    pub fn announce(&self, bytes: &Bytes, object: &Value) {
        if bytes.len() <= WRITTEN_BYTES_KEPT {
            self.written.announce(bytes, self.selectable(object), WRITES_KEPT);
        }
    }

    /// Says that these bytes, made of this tree, were read from another form. Whoever decodes them next need not.
    pub fn announce_read(&self, bytes: &Bytes, object: &Value) {
        if bytes.len() <= WRITTEN_BYTES_KEPT {
            self.read.announce(bytes, self.selectable(object), READS_KEPT);
        }
    }

    /// What was announced of these very bytes.
    fn take_announced(&self, bytes: &Bytes) -> Option<Selectable> {
        self.written.take(bytes).or_else(|| self.read.take(bytes))
    }

    fn selectable(&self, object: &Value) -> Selectable {
        let mut interned = self.interned.lock();
        let labels = object.map_at("metadata.labels").iter();
        Selectable {
            labels: labels
                .filter_map(|(key, value)| Some((interned.get(key), interned.get(value.as_str()?))))
                .collect(),
            fields: self
                .fields
                .iter()
                .map(|field| interned.get(&(field.value)(object, &field.name)))
                .collect(),
        }
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
        let Selectable { labels, fields } = match self.take_announced(value) {
            Some(selectable) => selectable,
            None => self.selectable(&self.decode_tree(value).map_err(|error| failed(&error))?),
        };
        Ok(DecodedObject {
            json: splice_revision(value, mod_revision).ok_or_else(|| failed(&"object without metadata"))?,
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

const METADATA: &[u8] = b"\"metadata\":{";
const RESOURCE_VERSION: &[u8] = b"\"resourceVersion\":\"";
/// What may stand before the resourceVersion. These are texts, all of them.
const BEFORE: [&[u8]; 5] =
    [b"\"name\":\"", b"\"generateName\":\"", b"\"namespace\":\"", b"\"selfLink\":\"", b"\"uid\":\""];

/// Where in an object's JSON the resourceVersion stands or would stand, and whether it is the first of the metadata.
///
/// Before the metadata come only the kind and the apiVersion, whose quotes would be escaped: the first `"metadata":{` is
/// the object's own.
fn revision_position(json: &[u8]) -> Option<(usize, bool)> {
    let mut at = memchr::memmem::find(json, METADATA)? + METADATA.len();
    let mut first = true;
    for key in BEFORE {
        let rest = json.get(at..)?;
        let rest = if first { Some(rest) } else { rest.strip_prefix(b",") };
        let Some(text) = rest.and_then(|rest| rest.strip_prefix(key)) else { continue };
        at += usize::from(!first) + key.len() + text_end(text)?;
        first = false;
    }
    Some((at, first))
}

/// Behind the quote that ends a text.
fn text_end(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = !escaped && *byte == b'"';
        escaped = !escaped && *byte == b'\\';
        ends
    });
    end.map(|end| end + 1)
}

/// The final JSON of a stored object; `None` when it has no metadata.
pub fn splice_revision(json: &[u8], revision: Revision) -> Option<Bytes> {
    let (at, first) = revision_position(json)?;
    let (head, tail) = json.split_at_checked(at)?;
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(revision.0);
    let mut out = BytesMut::with_capacity(json.len() + RESOURCE_VERSION.len() + digits.len() + 3);
    out.extend_from_slice(head);
    if !first {
        out.extend_from_slice(b",");
    }
    out.extend_from_slice(RESOURCE_VERSION);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(if first && !tail.starts_with(b"}") { b"\"," } else { b"\"" });
    out.extend_from_slice(tail);
    if !tail.ends_with(b"\n") {
        out.extend_from_slice(b"\n");
    }
    Some(out.freeze())
}

/// Final JSON without its resourceVersion.
pub fn remove_revision(json: &[u8]) -> Option<Bytes> {
    let (at, first) = revision_position(json)?;
    let (head, tail) = json.split_at_checked(at)?;
    let version = if first { Some(tail) } else { tail.strip_prefix(b",") };
    let Some(rest) = version.and_then(|version| version.strip_prefix(RESOURCE_VERSION)) else {
        return Some(Bytes::copy_from_slice(json));
    };
    let mut rest = rest.get(text_end(rest)?..)?;
    if first {
        rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    let mut out = BytesMut::with_capacity(json.len());
    out.extend_from_slice(head);
    out.extend_from_slice(rest);
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
    fn the_revision_goes_in_and_out_where_go_has_it() {
        let rows = [
            (
                r#"{"name":"a\"uid\":\"","uid":"1-2","labels":{"uid":"x"}}"#,
                r#"{"name":"a\"uid\":\"","uid":"1-2","resourceVersion":"42","labels":{"uid":"x"}}"#,
            ),
            (
                r#"{"name":"a\\","generateName":"b","namespace":"c","selfLink":"d","uid":"e","generation":1}"#,
                r#"{"name":"a\\","generateName":"b","namespace":"c","selfLink":"d","uid":"e","resourceVersion":"42","generation":1}"#,
            ),
            // Without a uid of its own, as kube-apiserver writes range allocations.
            (
                r#"{"name":"a","ownerReferences":[{"uid":"x"}]}"#,
                r#"{"name":"a","resourceVersion":"42","ownerReferences":[{"uid":"x"}]}"#,
            ),
            (r#"{"creationTimestamp":null}"#, r#"{"resourceVersion":"42","creationTimestamp":null}"#),
            ("{}", r#"{"resourceVersion":"42"}"#),
        ];
        for (bare, spliced) in rows {
            let object = |metadata: &str, end: &str| {
                format!(
                    r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{{"uid":"1"}}}}{end}"#
                )
            };
            let (stored, final_json) = (object(bare, "\n"), object(spliced, "\n"));
            assert_eq!(splice_revision(stored.as_bytes(), Revision(42)).unwrap(), final_json);
            assert_eq!(remove_revision(final_json.as_bytes()).unwrap(), stored);
            assert_eq!(remove_revision(stored.as_bytes()).unwrap(), stored);
            // As earlier versions of this server stored it.
            assert_eq!(splice_revision(object(bare, "").as_bytes(), Revision(42)).unwrap(), final_json);
        }
        assert_eq!(splice_revision(b"{}", Revision(1)), None);
    }
}
