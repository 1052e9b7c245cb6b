//! Objects as the cache keeps them: the final bytes, and the fields that selectors need.
//!
//! The registry defines the meaning of the bytes: it gives the cacher an [`ObjectDecoder`]. The cacher does not parse
//! them.

use crate::contents::{Contents, RepresentationId};
use arc_swap::ArcSwap;
use bytes::Bytes;
use pintle_storage::{Key, Packed, Payload, ReadError, Revision};
use std::sync::Arc;

/// Decodes stored bytes into objects for the cache. The registry supplies one for each resource.
pub trait ObjectDecoder: Send + Sync + 'static {
    /// Decodes the object stored under `key`: its JSON as clients receive it (with `resourceVersion` inserted), and
    /// the fields that selectors read, which a write of this process carries ([`Payload::decoded`]). Called once for every
    /// write, from the reflector's task.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not an object of the resource. The cacher then omits the object, see
    /// [`UnreadableObject`].
    fn decode(
        &self,
        key: &Key,
        value: &Payload,
        mod_revision: Revision,
    ) -> Result<DecodedObject, DecodeError>;

    /// `json`, as made by [`ObjectDecoder::decode`], with `metadata.resourceVersion` replaced: a DELETED event
    /// carries the object's last state with the revision of the deletion.
    fn rewrite_revision(&self, json: &Bytes, revision: Revision) -> Bytes;
}

/// The reason why stored bytes could not be decoded. A read of the object returns this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

/// The result of [`ObjectDecoder::decode`].
#[derive(Debug, Clone)]
pub struct DecodedObject {
    /// The object's final JSON.
    pub json: Bytes,
    /// The same, compressed, if that is at hand.
    pub packed: Option<Packed>,
    /// `metadata.namespace`, empty for cluster-scoped objects. Objects of one namespace should share the allocation.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The labels and fields.
    pub selectable: Arc<Selectable>,
}

/// The parts of an object that selectors read, and the exact form of the object where that differs from its JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selectable {
    /// `metadata.labels`.
    pub labels: Labels,
    /// The values of the resource's selectable fields, in the order of its declaration.
    pub fields: Box<[Arc<str>]>,
    /// The object's JSON, without a revision, with what [`CachedObject::json`] does not show of its values. Absent if it
    /// shows everything. Only the registry knows the difference.
    pub exact: Option<Bytes>,
}

/// Labels, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of one label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.value(key).map(AsRef::as_ref)
    }

    /// The value of one label, to be shared.
    pub(crate) fn value(&self, key: &str) -> Option<&Arc<str>> {
        let at = self.0.binary_search_by(|(other, _)| other.as_ref().cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// All labels, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    /// Sorts the labels; of two with the same key the later one wins.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(labels: I) -> Self {
        let given = labels.into_iter();
        let (least, most) = given.size_hint();
        let mut labels = Vec::with_capacity(most.unwrap_or(least));
        labels.extend(given);
        labels.reverse();
        labels.sort_by(|(a, _), (b, _)| a.cmp(b));
        labels.dedup_by(|(later, _), (kept, _)| later == kept);
        Labels(labels.into_boxed_slice())
    }
}

/// A stored value that could not be read. Lists and watches omit it; a read of this one object returns the error.
#[derive(Debug, Clone)]
pub struct UnreadableObject {
    /// The revision of the value.
    pub revision: Revision,
    /// The reason why the value cannot be read.
    pub error: ReadError,
    /// The last readable state of the object that this process has seen. Watchers still have that state: when the
    /// object becomes readable again it is MODIFIED for them, and it is DELETED for them only when it is deleted.
    pub(crate) last: Option<Arc<CachedObject>>,
}

/// An object as of one revision, shared behind [`Arc`] by snapshots, events and responses. Its content never changes,
/// but its JSON may be compressed at any time, see [`CachedObject::pack`].
#[derive(Debug)]
pub struct CachedObject {
    key: Key,
    revision: Revision,
    namespace: Arc<str>,
    name: Arc<str>,
    selectable: Arc<Selectable>,
    /// The size of the JSON, in bytes.
    size: usize,
    contents: ArcSwap<Contents>,
}

impl CachedObject {
    /// The object that was stored under `key` at `revision`.
    pub fn new(key: Key, revision: Revision, mut decoded: DecodedObject) -> CachedObject {
        let contents = Contents::open(decoded.json.clone(), decoded.packed.take());
        CachedObject::with_contents(key, revision, decoded, contents)
    }

    /// The same object, packed if its compressed form is at hand.
    pub(crate) fn new_packed(key: Key, revision: Revision, mut decoded: DecodedObject) -> CachedObject {
        match decoded.packed.take() {
            Some(packed) => CachedObject::with_contents(key, revision, decoded, Contents::of_packed(packed)),
            None => CachedObject::new(key, revision, decoded),
        }
    }

    fn with_contents(
        key: Key,
        revision: Revision,
        decoded: DecodedObject,
        contents: Contents,
    ) -> CachedObject {
        let DecodedObject { json, namespace, name, selectable, .. } = decoded;
        let (size, contents) = (json.len(), ArcSwap::from_pointee(contents));
        CachedObject { key, revision, namespace, name, selectable, size, contents }
    }

    /// The storage key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The object's resource version.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The object's JSON, without a revision, with what [`CachedObject::json`] does not show of its values.
    pub fn exact(&self) -> Option<&Bytes> {
        self.selectable.exact.as_ref()
    }

    /// The final JSON, as clients receive it. It is shared, or for a packed object decompressed for this call: take it
    /// once, and use [`CachedObject::size`] for its length.
    pub fn json(&self) -> Bytes {
        self.contents.load().json()
    }

    /// The length of [`CachedObject::json`], in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> &Labels {
        &self.selectable.labels
    }

    /// The values of the selectable fields, in the order of the resource's declaration.
    pub fn fields(&self) -> &[Arc<str>] {
        &self.selectable.fields
    }

    /// The value of one selectable field.
    pub fn field(&self, index: usize) -> Option<&str> {
        self.selectable.fields.get(index).map(AsRef::as_ref)
    }

    /// Another encoding of the object, which `make` computes on first use. It is kept until the object is packed;
    /// those of a packed object are not kept.
    ///
    /// Concurrent callers with the same `id` wait for the first one. `make` must not request the same representation
    /// of the same object.
    ///
    /// # Errors
    /// The error of `make`; the next caller calls its own `make`.
    pub fn representation<E>(
        &self,
        id: RepresentationId,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.contents.load_full().representation(id, make)
    }

    /// The length of a representation, or of a part of it that is always the same. `measure` computes it from the object,
    /// whose contents decide it alone; that of a packed object is kept for the last `id`.
    ///
    /// # Errors
    /// The error of `measure`.
    pub fn measured<E>(
        &self,
        id: RepresentationId,
        measure: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.contents.load_full().measured(id, measure)
    }

    /// A representation, if it is kept.
    pub fn existing_representation(&self, id: RepresentationId) -> Option<Bytes> {
        self.contents.load().existing_representation(id)
    }

    /// The same object for a reader that needs its encodings to stay: it is not packed, and shares the encodings with this
    /// one as long as this one is not packed either.
    pub fn opened(&self) -> CachedObject {
        let contents = self.contents.load_full();
        let contents = match contents.is_packed() {
            true => Arc::new(Contents::open(contents.json(), None)),
            false => contents,
        };
        CachedObject {
            key: self.key.clone(),
            revision: self.revision,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            selectable: self.selectable.clone(),
            size: self.size,
            contents: ArcSwap::new(contents),
        }
    }

    /// Compresses the JSON, where that saves much, and drops the other encodings. Readers are not delayed.
    pub(crate) fn pack(&self) {
        if let Some(packed) = self.contents.load().packed() {
            self.contents.store(Arc::new(packed));
        }
    }

    /// Whether [`CachedObject::pack`] was called.
    pub fn is_packed(&self) -> bool {
        self.contents.load().is_packed()
    }

    /// Whether both share their encodings: one is the other, [opened](CachedObject::opened).
    pub(crate) fn shares_contents(&self, other: &CachedObject) -> bool {
        Arc::ptr_eq(&self.contents.load(), &other.contents.load())
    }

    /// The bytes that the object keeps in memory, as far as they are known: its JSON and its other encodings.
    pub fn memory(&self) -> usize {
        self.contents.load().memory()
    }

    /// The bytes that the object's JSON takes in memory, which [`CachedObject::pack`] alone changes.
    pub(crate) fn json_memory(&self) -> usize {
        self.contents.load().json_memory()
    }

    pub(crate) fn namespace_arc(&self) -> &Arc<str> {
        &self.namespace
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    /// The same object with another resource version, as a DELETED event carries it.
    pub(crate) fn at_revision(&self, revision: Revision, decoder: &dyn ObjectDecoder) -> CachedObject {
        let json = decoder.rewrite_revision(&self.json(), revision);
        CachedObject {
            key: self.key.clone(),
            revision,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            selectable: self.selectable.clone(),
            size: json.len(),
            contents: ArcSwap::from_pointee(Contents::open(json, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opened_object_keeps_the_encodings_when_the_object_is_packed() {
        const ID: RepresentationId = RepresentationId(1);
        let object = crate::testing::object_of("a", 1, &"long ".repeat(100));
        let made = |text: &'static str| move || Ok::<_, ()>(Bytes::from_static(text.as_bytes()));
        assert_eq!(object.representation(ID, made("first")).unwrap(), "first");
        let opened = object.opened();
        object.pack();
        assert_eq!(object.existing_representation(ID), None);
        assert_eq!(opened.existing_representation(ID).unwrap(), "first");
        let reopened = object.opened();
        assert_eq!(reopened.existing_representation(ID), None);
        assert_eq!(reopened.representation(ID, made("second")).unwrap(), "second");
        assert_eq!(reopened.existing_representation(ID).unwrap(), "second");
        assert_eq!((reopened.json(), reopened.size()), (opened.json(), object.size()));
    }

    #[test]
    fn an_object_is_packed_as_the_storage_has_compressed_it() {
        let json = Bytes::from("long ".repeat(100));
        // Recognized by its text: packing does not read the JSON.
        let stored = Packed::new(&Bytes::from("other".repeat(100)));
        let decoded = DecodedObject {
            json: json.clone(),
            packed: Some(stored.clone()),
            namespace: "".into(),
            name: "a".into(),
            selectable: Arc::default(),
        };
        let object = CachedObject::new(Key::new("/a"), Revision(1), decoded);
        assert_eq!((object.json(), object.memory()), (json.clone(), json.len() + stored.memory()));
        object.pack();
        assert_eq!((object.json(), object.memory()), (stored.unpack(), stored.memory()));
    }

    #[test]
    fn labels_are_sorted_and_the_last_of_equal_keys_stays() {
        let labels: Labels = [("b", "1"), ("a", "2"), ("b", "3")]
            .into_iter()
            .map(|(key, value)| (Arc::from(key), Arc::from(value)))
            .collect();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!(labels.get("b"), Some("3"));
        assert_eq!(labels.get("c"), None);
        assert_eq!(labels.len(), 2);
    }
}
