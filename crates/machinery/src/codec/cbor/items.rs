//! Puts lists and watch events together from encoded objects, none of which is decoded.

use pintle_tree::Value;

use super::encode::write_any;
use super::reader::{Major, Reader};
use super::{PREFIX, write};

/// The bytes of a list before its `count` items. The members of the list are sorted by their encoding, so that `items`
/// comes first. `None` stands for a list of no items that is encoded as `null`.
pub fn list_head(kind: &str, count: Option<usize>) -> Vec<u8> {
    let mut out = PREFIX.to_vec();
    write::map(&mut out, 4);
    write::bytes(&mut out, b"kind");
    write::bytes(&mut out, kind.as_bytes());
    write::bytes(&mut out, b"items");
    match count {
        Some(count) => write::array(&mut out, count),
        None => write::null(&mut out),
    }
    out
}

/// The bytes of a list after its items.
pub fn list_foot(api_version: &str, metadata: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write::bytes(&mut out, b"metadata");
    write_any(&mut out, metadata);
    write::bytes(&mut out, b"apiVersion");
    write::bytes(&mut out, api_version.as_bytes());
    out
}

/// One event of a watch: a data item by itself.
pub fn watch_frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + event_type.len() + 24);
    out.extend_from_slice(PREFIX);
    write::map(&mut out, 2);
    write::bytes(&mut out, b"type");
    write::bytes(&mut out, event_type.as_bytes());
    write::bytes(&mut out, b"object");
    out.extend_from_slice(object);
    out
}

/// An encoded object as an item of a typed list: without its tag, kind and apiVersion. `None` for bytes that are no
/// encoded object.
pub fn without_type_meta(object: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(object.strip_prefix(PREFIX)?);
    let head = reader.head().ok().filter(|head| head.major == Major::Map && !head.is_indefinite())?;
    let mut members = Vec::with_capacity(object.len());
    let mut count = 0;
    for _ in 0..head.value {
        let start = reader.at();
        let key = reader.head().ok()?;
        let name = reader.take(usize::try_from(key.value).ok()?).ok()?;
        reader.skip().ok()?;
        if !matches!(name, b"kind" | b"apiVersion") {
            members.extend_from_slice(reader.since(start));
            count += 1;
        }
    }
    let mut out = Vec::with_capacity(members.len() + 4);
    write::map(&mut out, count);
    out.extend_from_slice(&members);
    Some(out)
}
