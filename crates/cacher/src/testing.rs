//! Objects for tests: the stored value is `name=value` pairs, such as `node=a;l:app=web`.

use crate::{CachedObject, DecodeError, DecodedObject, ObjectDecoder};
use bytes::Bytes;
use pintle_storage::{Key, Revision};
use std::sync::Arc;

/// Decodes `node=a;l:app=web`: the one selectable field and labels. `!` does not decode.
pub(crate) struct TestDecoder;

impl ObjectDecoder for TestDecoder {
    fn decode(&self, key: &Key, value: &Bytes, mod_revision: Revision) -> Result<DecodedObject, DecodeError> {
        let text = std::str::from_utf8(value).map_err(|error| DecodeError(error.to_string()))?;
        if text.starts_with('!') {
            return Err(DecodeError("not an object".into()));
        }
        let mut node: Arc<str> = "".into();
        let mut labels = Vec::new();
        for (name, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
            match name.strip_prefix("l:") {
                Some(label) => labels.push((Arc::from(label), Arc::from(value))),
                None if name == "node" => node = value.into(),
                None => {}
            }
        }
        let mut segments = key.as_str().rsplit('/');
        let name = segments.next().unwrap_or_default();
        let namespace = segments.next().unwrap_or_default();
        Ok(DecodedObject {
            json: json(text, mod_revision),
            namespace: namespace.into(),
            name: name.into(),
            labels: labels.into_iter().collect(),
            fields: [node].into(),
        })
    }

    fn rewrite_revision(&self, json_bytes: &Bytes, revision: Revision) -> Bytes {
        let text = std::str::from_utf8(json_bytes).unwrap();
        json(text.split_once('@').unwrap().0, revision)
    }
}

fn json(text: &str, revision: Revision) -> Bytes {
    Bytes::from(format!("{text}@{revision}"))
}

/// An object without node and labels.
pub(crate) fn object(key: &str, revision: u64) -> Arc<CachedObject> {
    object_of(key, revision, "")
}

/// An object from its stored text.
pub(crate) fn object_of(key: &str, revision: u64, text: &str) -> Arc<CachedObject> {
    let key = Key::new(key);
    let revision = Revision(revision);
    let decoded = TestDecoder.decode(&key, &Bytes::from(text.to_owned()), revision).unwrap();
    Arc::new(CachedObject::new(key, revision, decoded))
}
