//! Tests that the memory of decoding is bounded by a multiple of the body's size, for every body and encoding.

use pintle_counting_allocator::{CountingAllocator, peak_of};
use pintle_machinery::{
    codec::{json, protobuf, yaml},
    options::FieldValidation,
    patch::{json_patch, merge_patch, strategic},
};
use pintle_schema::{Schema, SchemaBuilder, SchemaRef, Structural, Type};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MIB: usize = 1 << 20;

/// `start`, `unit` as many times as fit, and `end`.
fn filled(start: &str, unit: &str, end: &str, size: usize) -> Vec<u8> {
    let times = (size - start.len() - end.len()) / unit.len();
    let unit = unit.repeat(times);
    let unit = match end.starts_with([']', '}']) {
        true => unit.strip_suffix(',').unwrap_or(&unit),
        false => &unit,
    };
    format!("{start}{unit}{end}").into_bytes()
}

/// Many values nested to the maximum depth.
fn nested(open: &str, close: &str, size: usize) -> Vec<u8> {
    let unit = format!("{}{},", open.repeat(200), close.repeat(200));
    filled("[", &unit, "]", size)
}

fn builtin(kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind("", "v1", kind).expect("a kind that there is")
}

fn anything() -> Schema {
    let mut builder = SchemaBuilder::new();
    let root = builder.scalar(Type::Any);
    builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
    builder.finish(root)
}

/// A protobuf field that contains a message.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    protobuf::write_field(&mut out, number, content);
    out
}

fn check(what: &str, size: usize, allowed: usize, run: impl FnOnce()) {
    let ((), peak) = peak_of(run);
    let allowed = allowed * size + 24 * MIB;
    assert!(
        peak <= allowed,
        "{what}: {size} bytes took {} KiB, {:.1} times as much; {} KiB are allowed",
        peak / 1024,
        peak as f64 / size as f64,
        allowed / 1024,
    );
}

/// Empty objects count as objects, because defaulting may add members to each.
fn empty_objects_count_as_objects() {
    let body = filled(r#"{"kind":"Pod","apiVersion":"v1","spec":{"containers":["#, "{},", "]}}", 3 * MIB);
    assert!(json::decode_body(&body, builtin("Pod")).is_err());
    assert!(yaml::to_json(&filled("[", "{},", "]", 3 * MIB)).is_err());
    // `spec` is field 2 of a pod, `containers` field 2 of it.
    let message = field(2, &[0x12, 0].repeat(MIB));
    assert!(protobuf::decode_body(&protobuf::seal("v1", "Pod", &message), builtin("Pod")).is_err());
}

/// A single test, since parallel tests would allocate too.
#[test]
fn memory_follows_the_body() {
    empty_objects_count_as_objects();
    decoding_takes_no_more_than_a_multiple_of_the_body();
    patching_takes_no_more_than_a_multiple_of_the_patch();
}

fn decoding_takes_no_more_than_a_multiple_of_the_body() {
    let anything = anything();
    let configmap = r#"{"kind":"ConfigMap","apiVersion":"v1","data":{"#;
    let pod = r#"{"kind":"Pod","apiVersion":"v1","spec":{"containers":["#;
    for size in [100 * 1024, MIB, 3 * MIB] {
        let bodies = [
            ("zeros", filled("[", "0,", "]", size)),
            ("numbers", filled("[", "1.5e300,", "]", size)),
            ("one long number", filled("[1", "1", "]", size)),
            ("short texts", filled("[", "\"\",", "]", size)),
            ("empty objects", filled("[", "{},", "]", size)),
            ("objects of one", filled("[", "{\"a\":0},", "]", size)),
            ("objects of one of one", filled("[", "{\"a\":{\"b\":0}},", "]", size)),
            ("lists of one", filled("[", "[0],", "]", size)),
            ("nested lists", nested("[", "]", size)),
            ("nested objects", nested("{\"\":", "}", size)),
            ("the same key", filled("{", "\"a\":{},", "}", size)),
            ("escapes", filled("[\"", "\\u0000", "\"]", size)),
        ];
        for (what, body) in &bodies {
            check(what, size, 20, || drop(json::decode_any_body(body)));
            check(what, size, 20, || drop(json::decode_body(body, anything.root())));
            check(&format!("{what} as YAML"), size, 20, || drop(yaml::to_json(body)));
        }
        let bodies = [
            ("data", "ConfigMap", filled(configmap, "\"a\":\"\",", "}}", size)),
            ("empty containers", "Pod", filled(pod, "{},", "]}}", size)),
            ("small containers", "Pod", filled(pod, "{\"tty\":true},", "]}}", size)),
            ("ports", "Pod", filled(&format!("{pod}{{\"ports\":["), "{\"hostPort\":1},", "]}]}}", size)),
            ("unknown fields", "Pod", filled("{", "\"a\":0,", "}", size)),
        ];
        for (what, kind, body) in &bodies {
            check(what, size, 20, || drop(json::decode_body(body, builtin(kind))));
        }
        let aliases = [
            ("a long scalar", filled(&format!("a: &a {}\nb: [", "x".repeat(size / 2)), "*a,", "]", size)),
            ("a small map", filled("a: &a {b: c}\nb: [", "*a,", "]", size)),
            ("a small list", filled("a: &a [1]\nb: [", "*a,", "]", size)),
            ("merges", filled("a: &a {b: c}\nb:\n", "- <<: *a\n", "", size)),
            (
                "aliases of aliases",
                format!(
                    "a: &a {}\nb: &b [{}*a]\nc: &c [{}*b]\nd: [{}*c]\n",
                    "x".repeat(size / 2),
                    "*a,".repeat(90),
                    "*b,".repeat(90),
                    "*c,".repeat(90)
                )
                .into_bytes(),
            ),
            ("items of a block", filled("", "- a\n", "", size)),
            ("nothing", filled("", "-\n", "", size)),
            ("a flow in a block", filled("a: [", "{},", "]", size)),
            ("texts of a flow in a block", filled("- a: &x !y\n  - {a: [", "\"b\": c,", "]}\n", size)),
            ("a flow behind a key that is none", filled("\"a\" [", "a,", "]", size)),
            ("a flow with brackets in quotes", filled("a: [\"]\", ']', a'b, ", "{},", "]", size)),
            ("flows", filled("", "- [a, {b: c}]\n", "", size)),
        ];
        for (what, body) in &aliases {
            check(what, size, 20, || drop(yaml::to_json(body)));
        }
        // Containers, each with one port that has one number.
        let port = field(6, &[0x18, 1]);
        let container = field(2, &port);
        for (what, unit) in [("empty messages", field(2, b"")), ("ports", container)] {
            let spec = unit.repeat(size / unit.len());
            let body = protobuf::seal("v1", "Pod", &field(2, &spec));
            check(what, body.len(), 20, || drop(protobuf::decode_body(&body, builtin("Pod"))));
        }
    }
}

fn patching_takes_no_more_than_a_multiple_of_the_patch() {
    let anything = anything();
    let size = MIB;
    let document = || pintle_machinery::json!({"a": {"b": [1, 2, 3]}});
    let copies = filled("[", r#"{"op":"copy","from":"/a","path":"/a/b/-"},"#, "]", size);
    let adds = filled("[", r#"{"op":"add","path":"/a/b/-","value":{"c":1}},"#, "]", size);
    for (what, body) in [("copies", copies), ("adds", adds)] {
        check(what, size, 40, || {
            let Ok(patch) = json::decode_body(&body, anything.root()) else { return };
            drop(json_patch::apply(document(), &patch.value, FieldValidation::Ignore));
        });
    }
    let merge = filled("{\"a\":[", "{\"b\":0},", "]}", size);
    check("a merge patch", size, 40, || {
        let Ok(patch) = json::decode_body(&merge, anything.root()) else { return };
        drop(merge_patch::apply(document(), patch.value, FieldValidation::Ignore));
    });
    let strategic = filled("{\"spec\":{\"containers\":[", "{\"name\":\"\"},", "]}}", size);
    check("a strategic merge patch", size, 40, || {
        let Ok(patch) = json::decode_body(&strategic, anything.root()) else { return };
        drop(strategic::apply(document(), patch.value, builtin("Pod")));
    });
}
