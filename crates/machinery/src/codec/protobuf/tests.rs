use pintle_schema::{Schema, SchemaRef};
use pintle_tree::{Value, json};

use super::*;
use crate::codec::json as json_codec;

fn kind(group: &str, version: &str, kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind(group, version, kind).unwrap()
}

#[test]
fn fields_that_are_no_pointers_are_always_written() {
    for (schema, value, expected) in [
        (
            kind("", "v1", "ConfigMap"),
            json!({}),
            &b"\x0a\x10\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0"[..],
        ),
        (
            Schema::builtin().by_type_name("k8s.io/api/core/v1.ServicePort").unwrap(),
            json!({"port": -1}),
            b"\x0a\0\x12\0\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x22\x06\x08\0\x10\0\x1a\0\x28\0",
        ),
        (
            Schema::builtin().by_type_name("k8s.io/api/core/v1.ResourceFieldSelector").unwrap(),
            json!({}),
            b"\x0a\0\x12\0\x1a\x03\x0a\x010",
        ),
    ] {
        assert_eq!(encode_message(&value, schema).unwrap(), expected, "{schema:?}");
        assert_eq!(decode_message(expected, schema).unwrap(), value, "{schema:?}");
    }
}

#[test]
fn what_has_no_message_is_not_encoded() {
    assert_eq!(encode(&json!({}), kind("meta.k8s.io", "v1", "Table")), None);
    assert!(encode(&json!({}), kind("", "v1", "Binding")).is_some());
}

#[test]
fn bodies_are_put_together_and_taken_apart() {
    let body = seal("v1", "ConfigMap", b"raw");
    let unknown = Unknown { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), raw: b"raw" };
    assert_eq!(open(&body), Ok(unknown));
    for (body, expected) in [
        (&b""[..], "empty data"),
        (b"k8s\0", "empty body"),
        (
            b"hello world",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\0\x0a\x0f\x0a", "unexpected EOF"),
        (b"k8s\0\x08\0", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\0\0", "proto: Unknown: illegal tag 0 (wire type 0)"),
        (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\0\x2f", "proto: illegal wireType 7"),
        (b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
        (
            b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "proto: negative length found during unmarshaling",
        ),
    ] {
        assert_eq!(open(body).unwrap_err().to_string(), expected, "{body:?}");
    }
}

#[test]
fn frames_hold_a_bare_watch_event_around_a_body() {
    let watch_event = kind("", "v1", "WatchEvent");
    for length in [0, 1, 100, 127, 128, 20_000] {
        let tree = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b".repeat(length)}});
        let object = encode(&tree, kind("", "v1", "ConfigMap")).unwrap();
        let frame = watch_frame("ADDED", &object);
        let (len, event) = frame.split_first_chunk::<4>().unwrap();
        assert_eq!(u32::from_be_bytes(*len) as usize, event.len());
        assert_eq!(frame.capacity(), frame.len());
        assert_eq!(decode_message(event, watch_event).unwrap(), json!({"type": "ADDED", "object": tree}));
    }
    assert_eq!(watch_frame("ADDED", b"k8s\0"), b"\0\0\0\x0f\x0a\x05ADDED\x12\x06\x0a\x04k8s\0");
}

#[test]
fn unknown_fields_groups_and_packed_numbers_are_read() {
    let context = Schema::builtin().by_type_name("k8s.io/api/core/v1.PodSecurityContext").unwrap();
    // supplementalGroups (4) packed, then one more; field 1000 as a group.
    let message = b"\x22\x03\x01\x96\x01\x20\x05\xc3\x3e\x08\x01\xc4\x3e";
    assert_eq!(decode_message(message, context).unwrap(), json!({"supplementalGroups": [1, 150, 5]}));
    assert!(decode_message(b"\xc3\x3e\x08", context).is_err());
}

#[test]
fn empty_bytes_of_a_field_that_is_always_written_are_not_absent() {
    let allocation = Schema::builtin().by_type_name("k8s.io/api/core/v1.RangeAllocation").unwrap();
    for tree in [json!({"range": "1-2", "data": ""}), json!({"range": "1-2"})] {
        let message = encode_message(&tree, allocation).unwrap();
        assert_eq!(decode_message(&message, allocation).unwrap(), tree);
    }
}

#[test]
fn entries_of_maps_have_any_tags() {
    let schema = kind("", "v1", "ConfigMap");
    let data = schema.field("data").unwrap().number();
    let decoded = |entry: &[u8]| {
        let mut message = Vec::new();
        wire::write_bytes(&mut message, data, entry);
        decode_message(&message, schema).map_err(|error| error.to_string())
    };
    let both = Ok(json!({"data": {"k": "v"}}));
    assert_eq!(decoded(b"\x0a\x01k\x12\x01v"), both);
    // Other wire types of the key and the value, field zero, and a field without a meaning.
    assert_eq!(decoded(b"\x08\x01k\x15\x01v"), both);
    assert_eq!(decoded(b"\x02\x01x\x0a\x01k\x12\x01v\x18\x05"), both);
    assert_eq!(decoded(b"\x1c"), Err("proto: unexpected end of group".to_owned()));
    assert_eq!(decoded(b"\x0a\x02k"), Err("unexpected EOF".to_owned()));
    let number = |tag: u8| decode_message(&[tag, 0], schema).unwrap_err().to_string();
    assert_eq!(number((data << 3) as u8), "proto: wrong wireType = 0 for field Data");
}

#[test]
fn keys_and_values_of_maps_end_within_their_entries() {
    let map = kind("", "v1", "ConfigMap");
    let data =
        |bytes: &[u8]| decode_message(&[b"\x12", bytes].concat(), map).map(|value| value["data"].clone());
    let error = |bytes: &[u8]| data(bytes).unwrap_err().to_string();
    // A value behind the entry is not read: each entry would read it again.
    assert_eq!(error(b"\x06\x0a\x01k\x12\x02v\x20\x01"), "unexpected EOF");
    assert_eq!(data(b"\x04\x0a\x01k\x12\x20\x00").unwrap_err().to_string(), "unexpected EOF");
    assert_eq!(error(b"\x06\x0a\x01k\x1a\x02v\x20\x01"), "unexpected EOF");
    assert_eq!(error(b"\x04\x0a\x01k\x1c"), "proto: unexpected end of group");
    assert_eq!(error(b"\x0b\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "unexpected EOF");
    let negative = "proto: negative length found during unmarshaling";
    assert_eq!(error(b"\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), negative);
    assert_eq!(error(b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), negative);
}

#[test]
fn entries_that_claim_the_rest_of_a_body_are_refused_at_once() {
    // Each entry of the capacity of a device claims the next 50,000 ones as its value, whose fields they are not.
    let entries = b"\x1a\x04\x12\xe0\xa7\x12".repeat(200_000);
    let within = |tag: u8, message: Vec<u8>| {
        let (mut bytes, mut length) = (vec![tag], message.len());
        while length > 0x7f {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        [bytes, message].concat()
    };
    let slice = within(0x12, within(0x32, entries));
    let begun = std::time::Instant::now();
    let decoded = decode_message(&slice, kind("resource.k8s.io", "v1", "ResourceSlice"));
    assert_eq!(decoded.unwrap_err().to_string(), "unexpected EOF");
    assert!(begun.elapsed() < std::time::Duration::from_secs(2));
}

#[test]
fn each_text_of_a_quantity_is_one() {
    let quota = kind("", "v1", "ResourceQuota");
    let hard = |quantity: &[u8]| {
        let entry = [b"\x0a\x01a\x12", &[quantity.len() as u8][..], quantity].concat();
        let map = [b"\x0a", &[entry.len() as u8][..], &entry].concat();
        let spec = [b"\x12", &[map.len() as u8][..], &map].concat();
        decode_message(&spec, quota).map(|value| value["spec"]["hard"]["a"].clone())
    };
    assert_eq!(hard(b"\x0a\x012\x0a\x013").unwrap(), json!("3"));
    let error = hard(b"\x0a\x01x\x0a\x013").unwrap_err().to_string();
    assert!(error.starts_with("quantities must match"), "{error}");
}

#[test]
fn fields_of_other_wire_types_are_refused_under_their_names_in_go() {
    let check = |name: &str, field: &str, message: &[u8], expected: &str| {
        let schema = Schema::builtin().by_type_name(name).unwrap();
        let number = schema.field(field).unwrap().number();
        let mut outer = Vec::new();
        wire::write_bytes(&mut outer, number, message);
        assert_eq!(decode_message(&outer, schema).unwrap_err().to_string(), expected, "{name} {field}");
    };
    let metadata = "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta";
    check(metadata, "creationTimestamp", b"\x0a\x00", "proto: wrong wireType = 2 for field Seconds");
    check(metadata, "creationTimestamp", b"\x15abcd", "proto: wrong wireType = 5 for field Nanos");
    let revision = "k8s.io/api/apps/v1.ControllerRevision";
    check(revision, "data", b"\x08\x01", "proto: wrong wireType = 0 for field Raw");
    check(revision, "data", b"\x0c", "proto: RawExtension: wiretype end group for non-group");
    let port = "k8s.io/api/core/v1.ServicePort";
    check(port, "targetPort", b"\x1a\x01a\x12\x00", "proto: wrong wireType = 2 for field IntVal");
    for (group, version, name, expected) in [
        ("", "v1", "ConfigMap", "proto: wrong wireType = 0 for field ObjectMeta"),
        ("", "v1", "ConfigMapList", "proto: wrong wireType = 0 for field ListMeta"),
    ] {
        let error = decode_message(b"\x08\x01", kind(group, version, name)).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

#[test]
fn nested_bombs_are_refused() {
    let schema = Schema::builtin()
        .by_type_name("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps")
        .unwrap();
    let not = schema.field("not").unwrap().number();
    let mut message = Vec::new();
    for _ in 0..2_000 {
        let inner = std::mem::take(&mut message);
        wire::write_bytes(&mut message, not, &inner);
    }
    assert_eq!(decode_message(&message, schema).unwrap_err().to_string(), "proto: exceeded max depth");
    let mut body = Vec::new();
    for _ in 0..2_000 {
        let frame = watch_frame("ADDED", &body);
        body = seal("", "", &frame[4..]);
    }
    assert!(decode(&body, kind("", "v1", "WatchEvent")).is_err());
}

#[test]
fn every_kind_reads_back_what_it_writes_of_nothing() {
    for kind in Schema::builtin().kinds() {
        let tree = json_codec::decode(b"{}", kind.schema).unwrap().value;
        if let Some(message) = encode_message(&tree, kind.schema) {
            assert_eq!(
                decode_message(&message, kind.schema).unwrap(),
                Value::Object(Default::default()),
                "{}",
                kind.kind
            );
        }
    }
}
