//! Inserts and removes the resourceVersion in an object's JSON without decoding.
//!
//! Built-in kinds are encoded in Go's field order, where it follows `metadata.uid`; custom resources, which are maps in
//! Go, are sorted by key. Only the former begin with the kind, which tells the two apart.

use bytes::{Bytes, BytesMut};
use pintle_storage::{Packed, Revision};

const METADATA: &[u8] = b"\"metadata\":{";
const RESOURCE_VERSION: &[u8] = b"\"resourceVersion\":\"";
/// The members that may precede the resourceVersion. All of them are strings.
const BEFORE: [&[u8]; 5] =
    [b"\"name\":\"", b"\"generateName\":\"", b"\"namespace\":\"", b"\"selfLink\":\"", b"\"uid\":\""];

/// The first bytes of JSON in Go's field order. Sorted by key, the apiVersion precedes the kind.
const DECLARED: &[u8] = b"{\"kind\":";

/// The position of the resourceVersion in an object's JSON, present or not, and whether it is the first member of the
/// metadata.
fn revision_position(json: &[u8]) -> Option<(usize, bool)> {
    match json.starts_with(DECLARED) {
        true => declared_position(json),
        false => sorted_position(json),
    }
}

/// Only kind and apiVersion precede the metadata, and quotes in them would be escaped: the first `"metadata":{` is the
/// object's own.
fn declared_position(json: &[u8]) -> Option<(usize, bool)> {
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

/// Any members may precede the metadata, and the resourceVersion in it.
fn sorted_position(json: &[u8]) -> Option<(usize, bool)> {
    let mut members = Members::of(json, 0)?;
    let metadata = loop {
        let (key, value) = members.next_member()?;
        if key == b"metadata" {
            break value;
        }
        members.skip(value)?;
    };
    let mut members = Members::of(json, metadata)?;
    while let Some((key, value)) = members.next_member() {
        if key >= b"resourceVersion".as_slice() {
            break;
        }
        members.skip(value)?;
    }
    Some((members.at, members.first))
}

/// The value of `apiVersion` in JSON sorted by key, without its quotes.
pub(super) fn api_version_of(json: &[u8]) -> Option<&[u8]> {
    let mut members = Members::of(json, 0)?;
    loop {
        let (key, value) = members.next_member()?;
        members.skip(value)?;
        if key == b"apiVersion" {
            return json.get(value..members.at)?.strip_prefix(b"\"")?.strip_suffix(b"\"");
        }
    }
}

/// The value of `metadata` in an object's JSON. The text behind it is not read.
pub fn metadata_json(json: &[u8]) -> Option<&[u8]> {
    let mut members = Members::of(json, 0)?;
    loop {
        let (key, value) = members.next_member()?;
        let value = members.skip(value)?;
        if key == b"metadata" {
            return Some(value);
        }
    }
}

/// Iterates over the members of an object that was encoded without whitespace.
pub(super) struct Members<'a> {
    json: &'a [u8],
    /// The position after the last skipped member.
    at: usize,
    first: bool,
}

impl<'a> Members<'a> {
    /// The members of the object that begins at a position; `None` if none does.
    pub(super) fn of(json: &'a [u8], at: usize) -> Option<Members<'a>> {
        (json.get(at) == Some(&b'{')).then_some(Members { json, at: at + 1, first: true })
    }

    /// The key of the next member, and the position of its value; `None` at the end.
    pub(super) fn next_member(&self) -> Option<(&'a [u8], usize)> {
        let rest = self.json.get(self.at..)?;
        let (rest, comma) = if self.first { (rest, 0) } else { (rest.strip_prefix(b",")?, 1) };
        let text = rest.strip_prefix(b"\"")?;
        let end = text_end(text)?;
        let key = text.get(..end.checked_sub(1)?)?;
        (text.get(end) == Some(&b':')).then_some((key, self.at + comma + 1 + end + 1))
    }

    /// Goes on after the member with the value at a position, which is returned.
    pub(super) fn skip(&mut self, value: usize) -> Option<&'a [u8]> {
        let rest = self.json.get(value..)?;
        let (value_of, _) = rest.split_at_checked(value_end(rest)?)?;
        self.pass(value + value_of.len());
        Some(value_of)
    }

    /// Goes on after the member whose value ends at a position.
    pub(super) fn pass(&mut self, end: usize) {
        self.at = end;
        self.first = false;
    }

    /// The position after the object, once it has no more members.
    pub(super) fn end(&self) -> Option<usize> {
        (self.json.get(self.at) == Some(&b'}')).then_some(self.at + 1)
    }
}

/// The end of the value that the JSON begins with.
fn value_end(json: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match json.get(at)? {
            b'"' => at += 1 + text_end(json.get(at + 1..)?)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' => {
                at += 1;
                continue;
            }
            _ => {
                let end = json.get(at..)?.iter().position(|byte| matches!(byte, b',' | b'}' | b']'));
                at += end.unwrap_or(json.len() - at);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The position after the closing quote of a string.
fn text_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The final JSON of a stored object; `None` when the object has no metadata.
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

/// The packed form of final JSON, from that of the stored JSON that [`splice_revision`] made it of.
pub(super) fn inserted_revision(packed: Packed, stored: &[u8], json: &[u8]) -> Option<Packed> {
    let (at, _) = revision_position(stored)?;
    let inserted = json.get(at..(at + json.len()).checked_sub(stored.len())?)?;
    // Otherwise a newline was added.
    (stored.ends_with(b"\n") && !inserted.is_empty()).then(|| packed.with_insertion(at, inserted))
}

/// Final JSON without its resourceVersion; `None` when the object has no metadata.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_form_is_that_of_the_final_json() {
        let stored = [
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","labels":{"a":"b"}},"spec":{}}"#,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"a":"b"}},"spec":{}}"#,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{}}"#,
            r#"{"apiVersion":"e/v1","kind":"W","metadata":{"name":"a","uid":"u"},"spec":{}}"#,
        ];
        for stored in stored {
            let stored = Bytes::from(format!("{stored}\n"));
            let json = splice_revision(&stored, Revision(1234)).unwrap();
            let packed = inserted_revision(Packed::new(&stored), &stored, &json).unwrap();
            assert_eq!(packed.unpack(), json);
        }
        let bare = Bytes::from_static(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#);
        let json = splice_revision(&bare, Revision(1)).unwrap();
        assert!(inserted_revision(Packed::new(&bare), &bare, &json).is_none());
    }

    #[test]
    fn metadata_is_found_without_a_look_at_what_follows() {
        for (json, expected) in [
            (r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":]"#, Some(r#"{"name":"a"}"#)),
            (r#"{"apiVersion":"v1","data":{"metadata":{}},"metadata":{"a":[{}]},"#, Some(r#"{"a":[{}]}"#)),
            (r#"{"kind":"Pod"}"#, None),
            ("[]", None),
        ] {
            assert_eq!(metadata_json(json.as_bytes()), expected.map(str::as_bytes), "{json}");
        }
    }

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
            // Without a UID of its own, as kube-apiserver writes range allocations.
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
            // Earlier versions of this server stored an empty resourceVersion.
            assert_eq!(splice_revision(object(bare, "").as_bytes(), Revision(42)).unwrap(), final_json);
        }
        assert_eq!(splice_revision(b"{}", Revision(1)), None);
    }

    #[test]
    fn in_custom_resources_it_goes_where_the_keys_are_sorted() {
        let rows = [
            (
                r#"{"apiVersion":"g/v1","data":{"metadata":{"a":"]}"}},"kind":"K","metadata":{"name":"a\"\\","namespace":"b","uid":"c"},"spec":[1,{}]}"#,
                r#"{"apiVersion":"g/v1","data":{"metadata":{"a":"]}"}},"kind":"K","metadata":{"name":"a\"\\","namespace":"b","resourceVersion":"42","uid":"c"},"spec":[1,{}]}"#,
            ),
            (
                r#"{"a":1,"apiVersion":"g/v1","kind":"K","metadata":{"uid":"c"}}"#,
                r#"{"a":1,"apiVersion":"g/v1","kind":"K","metadata":{"resourceVersion":"42","uid":"c"}}"#,
            ),
            (
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{}}"#,
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{"resourceVersion":"42"}}"#,
            ),
            (
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{"generation":1,"labels":{"uid":"1"},"name":"n"}}"#,
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{"generation":1,"labels":{"uid":"1"},"name":"n","resourceVersion":"42"}}"#,
            ),
        ];
        for (bare, spliced) in rows {
            let (stored, final_json) = (format!("{bare}\n"), format!("{spliced}\n"));
            assert_eq!(splice_revision(stored.as_bytes(), Revision(42)).unwrap(), final_json);
            assert_eq!(remove_revision(final_json.as_bytes()).unwrap(), stored);
            assert_eq!(remove_revision(stored.as_bytes()).unwrap(), stored);
        }
        for broken in
            ["", "{", r#"{"a""#, r#"{"a":"#, r#"{"a":{"#, r#"{"metadata":[]}"#, r#"{"metadata":{"a":"\"#]
        {
            assert_eq!(splice_revision(broken.as_bytes(), Revision(1)), None, "{broken}");
        }
    }
}
