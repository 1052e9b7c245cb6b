//! Fuzzes the JSONPath templates of printer columns, on objects.

use pintle_machinery::{JsonPath, Value, codec::json};

/// The data is a template, a line feed and an object. An evaluation ends, and has the same result again; a template
/// that fails on an object selects nothing in it.
pub(crate) fn json_path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (template, object) = text.split_once('\n').unwrap_or((text, "{}"));
    let object = json::decode_any(object.as_bytes()).unwrap_or(Value::Null);
    if let Ok(path) = JsonPath::parse(template) {
        let found = path.find(&object);
        assert_eq!(path.find(&object), found);
        assert_eq!(path.first(&object), found.ok().and_then(|found| found.first()?.first().copied()));
    }
    // A refused path in braces has the same error as its template.
    let in_braces = JsonPath::parse(&format!("{{{template}}}"));
    assert_eq!(JsonPath::parse_path(template), in_braces);
}
