//! Changes an object, or the bytes of one, by dice.

use serde_json::{Value, json};

use super::dice::Dice;

/// A changed object, and what was changed.
pub(super) fn changed(object: &Value, dice: &mut Dice) -> (Value, String) {
    let mut object = object.clone();
    let mut paths = Vec::new();
    collect(&object, String::new(), &mut paths);
    let Some(path) = dice.pick(&paths).cloned() else { return (object, "nothing".to_owned()) };
    let values = [
        json!(null),
        json!(""),
        json!("A b"),
        json!("1"),
        json!("x".repeat(300)),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(99_999_999_999_i64),
        json!(true),
        json!([]),
        json!([null]),
        json!({}),
        json!({"a": "b"}),
    ];
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let name = name.replace("~1", "/").replace("~0", "~");
    let what = match (dice.below(values.len() + 4), object.pointer_mut(parent)) {
        (0, Some(Value::Object(members))) => {
            members.remove(&name);
            "removed".to_owned()
        }
        (0, Some(Value::Array(items))) => {
            let index = name.parse().unwrap_or(items.len());
            items.splice(index..(index + 1).min(items.len()), []);
            "removed".to_owned()
        }
        (1, Some(Value::Object(members))) => {
            members.insert("unknownField".to_owned(), json!(1));
            "with an unknown field beside it".to_owned()
        }
        (1 | 2, Some(Value::Array(items))) => {
            items.extend(items.first().cloned());
            "with the first item again".to_owned()
        }
        (index, _) => {
            let value = values.get(index.saturating_sub(4)).cloned().unwrap_or_default();
            let what = format!("= {}", value.to_string().chars().take(20).collect::<String>());
            if let Some(place) = object.pointer_mut(&path) {
                *place = value;
            }
            what
        }
    };
    (object, format!("{path} {what}"))
}

/// The JSON pointers of all values below a value, except for the name of the object.
fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        if path != "/metadata/name" && path != "/metadata/namespace" {
            paths.push(path.clone());
        }
        collect(value, path, paths);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value));
        }
        _ => {}
    }
}

/// Changed bytes, and what was changed; the first bytes, which tell the format, are kept.
pub(super) fn changed_bytes(bytes: &[u8], kept: usize, dice: &mut Dice) -> (Vec<u8>, String) {
    let mut bytes = bytes.to_vec();
    let at = kept + dice.below(bytes.len().saturating_sub(kept));
    let Some(byte) = bytes.get(at).copied() else { return (bytes, "nothing".to_owned()) };
    let replacement: &[u8] = match dice.below(7) {
        0 => &[],
        1 => &[byte, byte],
        2 => &[0],
        3 => &[0xff],
        4 => &[byte ^ 1],
        5 => &[byte ^ 8],
        _ => {
            bytes.truncate(at);
            return (bytes, format!("cut at {at}"));
        }
    };
    let what = format!("byte {at}: {byte:02x} to {replacement:02x?}");
    bytes.splice(at..=at, replacement.iter().copied());
    (bytes, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_object_is_changed_in_one_place_of_many() {
        let object = json!({"metadata": {"name": "a", "labels": {"a/b": "c"}}, "spec": {"list": [{"k": 1}, {"k": 2}]}});
        let mut dice = Dice::new(1, "test");
        let changes: Vec<_> = (0..300).map(|_| changed(&object, &mut dice)).collect();
        assert!(changes.iter().all(|(changed, _)| *changed != object), "{changes:?}");
        let places: BTreeSet<&str> =
            changes.iter().filter_map(|(_, what)| Some(what.split_once(' ')?.0)).collect();
        assert!(places.contains("/metadata/labels/a~1b") && places.contains("/spec/list/1/k"), "{places:?}");
        assert!(!places.contains("/metadata/name"));
    }

    #[test]
    fn bytes_are_changed_behind_those_that_are_kept() {
        let bytes: Vec<u8> = (0..40).collect();
        let mut dice = Dice::new(1, "test");
        for _ in 0..200 {
            let (changed, what) = changed_bytes(&bytes, 4, &mut dice);
            assert_eq!(changed.get(..4), bytes.get(..4), "{what}");
        }
        assert_eq!(changed_bytes(b"k8s", 4, &mut dice).0, b"k8s");
    }
}
