//! JSON patch (RFC 6902), with Kubernetes' deviations.
//!
//! - `replace` of a missing member adds it; a missing `value` is null.
//! - Negative list indices count from the end.
//! - The text before a path's first slash is ignored.
//! - Numbers are equal only if they are written alike: 1 is not 1.0.
//!
//! All effects that a short patch could multiply are bounded: the bytes that copies add, the depth of the document, and
//! the work of the operations.

use super::PatchError;
use crate::codec::MAX_DEPTH;
use crate::options::FieldValidation;
use crate::text::go_json_type;
use crate::tree::{depth, size};
use crate::{Map, Value};
use pintle_go_forms::quote;

/// The maximum number of operations of a patch.
const MAX_OPERATIONS: usize = 10_000;
/// The maximum total size that a patch's copies add, in bytes.
const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of list items and members that a patch's operations visit together, in addition to the patch
/// itself: to shift the items behind an inserted or removed one, and to measure the depth of a moved value.
const MAX_STEPS: usize = 50_000_000;

/// The end of the message of a test that fails.
const TEST_FAILED: &str = ": test failed";

/// Applies all operations, or none. The result is no deeper than [`MAX_DEPTH`] if document and patch are not.
///
/// # Errors
/// [`PatchError`], when the patch is malformed, exceeds a bound, or does not fit the document.
pub fn apply(document: Value, patch: &Value, validation: FieldValidation) -> Result<Value, PatchError> {
    let operations = decode(patch, validation)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    apply_operations(document, operations)
}

/// As [`apply`], with any number of operations, as the answers of webhooks and the expressions of policies may have. The
/// work is bounded all the same.
///
/// # Errors
/// As [`apply`].
pub fn apply_any_number(
    document: Value,
    patch: &Value,
    validation: FieldValidation,
) -> Result<Value, PatchError> {
    apply_operations(document, decode(patch, validation)?)
}

fn apply_operations(document: Value, operations: Vec<Option<&Map>>) -> Result<Value, PatchError> {
    let mut applier = Applier { depth: depth(&document), document, copied_bytes: 0, steps: Steps(0) };
    for operation in operations {
        let tests = operation.is_some_and(|operation| operation.get("op").is_some_and(|kind| kind == "test"));
        applier.apply(operation).map_err(|why| match tests && why.ends_with(TEST_FAILED) {
            true => PatchError::TestFailed(why),
            false => PatchError::Unprocessable(why),
        })?;
    }
    Ok(applier.document)
}

/// Checks that a patch is a list of operations, whatever they are.
///
/// # Errors
/// [`PatchError::BadRequest`], when it is not.
pub fn check(patch: &Value) -> Result<(), PatchError> {
    decode(patch, FieldValidation::Ignore).map(drop)
}

/// Decodes the operations; `None` stands for null, an operation without a kind.
fn decode(patch: &Value, validation: FieldValidation) -> Result<Vec<Option<&Map>>, PatchError> {
    // Field validation decodes the patch a first time, into other types.
    let (prefix, list_type, item_type) = match validation {
        FieldValidation::Ignore => ("", "jsonpatch.Patch", "jsonpatch.Operation"),
        FieldValidation::Warn | FieldValidation::Strict => {
            ("error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
        }
    };
    let mistyped = |value: &Value, go_type: &str| {
        let found = go_json_type(value);
        PatchError::BadRequest(format!(
            "{prefix}json: cannot unmarshal {found} into Go value of type {go_type}"
        ))
    };
    let items = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        other => return Err(mistyped(other, list_type)),
    };
    let mut operations = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::Null => operations.push(None),
            Value::Object(operation) => operations.push(Some(operation)),
            other => return Err(mistyped(other, item_type)),
        }
    }
    if validation != FieldValidation::Ignore {
        for operation in operations.iter().flatten() {
            for name in ["op", "path", "from"] {
                if let Some(value) =
                    operation.get(name).filter(|value| !value.is_string() && !value.is_null())
                {
                    return Err(PatchError::BadRequest(format!(
                        "{prefix}json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                        go_json_type(value)
                    )));
                }
            }
        }
    }
    Ok(operations)
}

/// The reason why a path cannot be followed to its end.
enum Fault {
    /// The container of the path's last part does not exist.
    NoContainer,
    /// The container has no such position.
    Key(String),
    /// The work exceeds a bound.
    Limit(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Fault {
        Fault::Key(why)
    }
}

struct Applier {
    document: Value,
    /// An upper bound of the document's depth.
    depth: usize,
    copied_bytes: usize,
    steps: Steps,
}

/// The number of items that the operations have visited.
struct Steps(usize);

impl Steps {
    fn add(&mut self, items: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(items);
        match self.0 > MAX_STEPS {
            true => Err("the patch's operations are too much work".to_owned()),
            false => Ok(()),
        }
    }
}

impl Applier {
    fn apply(&mut self, operation: Option<&Map>) -> Result<(), String> {
        let text = |name: &str| operation.and_then(|operation| operation.get(name)).and_then(Value::as_str);
        let kind = text("op").unwrap_or("unknown");
        let path = || {
            text("path").ok_or_else(|| match kind {
                "add" | "remove" | "copy" => format!("{kind} operation failed to decode path: missing value"),
                _ => format!(
                    "{kind} operation failed to decode path: operation missing path field: missing value"
                ),
            })
        };
        let from = || {
            text("from").ok_or_else(|| {
                format!(
                    "{kind} operation failed to decode from: operation, missing from field: missing value"
                )
            })
        };
        let value = operation.and_then(|operation| operation.get("value"));
        let not_there = |what: String| format!("{kind} operation does not apply: {what}: missing value");
        match kind {
            "add" => {
                let path = path()?;
                self.deepen(path, value.map(depth).unwrap_or_default())?;
                self.add(path, value.cloned().unwrap_or_default()).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing path: \"{path}\"")),
                    Fault::Key(why) => format!("error in add for path: '{path}': {why}"),
                })
            }
            "remove" => {
                let path = path()?;
                self.remove(path).map(drop).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing path: \"{path}\"")),
                    Fault::Key(why) => format!("error in remove for path: '{path}': {why}"),
                })
            }
            "replace" => {
                let path = path()?;
                self.deepen(path, value.map(depth).unwrap_or_default())?;
                self.replace(path, value.cloned().unwrap_or_default()).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing path: {path}")),
                    // The reference formats an error that it does not have.
                    Fault::Key(why) if path.is_empty() => format!("{why}: %!w(<nil>)"),
                    Fault::Key(_) => not_there(format!("doc is missing key: {path}")),
                })
            }
            "move" => {
                let from = from()?;
                let value = self.remove(from).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing from path: {from}")),
                    Fault::Key(why) => {
                        let key = decode_key(from.rsplit_once('/').map_or(from, |(_, key)| key));
                        format!("error in move for path: '{key}': {why}")
                    }
                })?;
                // A value below `from` is no deeper than the whole document was. It is measured only if this bound
                // exceeds the maximum.
                let bound = self.depth.saturating_sub(steps_to(from));
                let path = path()?;
                if self.deepen(path, bound).is_err() {
                    self.steps.add(size(&self.document).saturating_add(size(&value)))?;
                    self.depth = depth(&self.document);
                    self.deepen(path, depth(&value))?;
                }
                self.add(path, value).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing destination path: {path}")),
                    Fault::Key(why) => format!("error in move for path: '{path}': {why}"),
                })
            }
            "copy" => {
                let from = from()?;
                let value = self.get(from).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing from path: {from}")),
                    Fault::Key(why) => format!("error in copy for from: '{from}': {why}"),
                })?;
                let value = value.cloned().unwrap_or_default();
                let path = path()?;
                self.deepen(path, depth(&value))?;
                self.copied_bytes += value.to_string().len();
                if self.copied_bytes > MAX_COPY_BYTES {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the \
                         limit {MAX_COPY_BYTES}",
                        self.copied_bytes
                    ));
                }
                self.add(path, value).map_err(|error| match error {
                    Fault::Limit(why) => why,
                    Fault::NoContainer => not_there(format!("doc is missing destination path: {path}")),
                    Fault::Key(why) => format!("error while adding value during copy: {why}"),
                })
            }
            "test" => self.test(path()?, value),
            kind => Err(format!("Unexpected kind: {kind}")),
        }
    }

    /// Accounts for a value of this depth that is about to be put at a path.
    fn deepen(&mut self, path: &str, value: usize) -> Result<(), String> {
        let whole = steps_to(path) + value;
        if whole > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.depth = self.depth.max(whole);
        Ok(())
    }

    fn get(&mut self, path: &str) -> Result<Option<&Value>, Fault> {
        let (container, key) = parent(&mut self.document, path)?;
        match container {
            Value::Array(items) => {
                let index = existing_index(&key, items.len())?;
                Ok(items.get(index))
            }
            container => Ok(container.get(&key)),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), Fault> {
        let (container, key) = parent(&mut self.document, path)?;
        match container {
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                // A new item may be appended, and -1 is that position.
                let index =
                    existing_index(&key, items.len() + 1).map_err(|why| match key.parse::<i64>() {
                        Ok(_) => why,
                        Err(_) => format!("value was not a proper array index: '{key}': {why}"),
                    })?;
                self.steps.add(items.len() - index).map_err(Fault::Limit)?;
                items.insert(index, value);
            }
            container => {
                container.as_object_mut().map(|members| members.insert(key, value));
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, Fault> {
        let (container, key) = parent(&mut self.document, path)?;
        match container {
            Value::Array(items) => {
                let index = existing_index(&key, items.len())?;
                self.steps.add(items.len() - index).map_err(Fault::Limit)?;
                Ok(items.remove(index))
            }
            container => container
                .as_object_mut()
                .and_then(|members| members.remove(&key))
                .ok_or_else(|| Fault::Key(format!("Unable to remove nonexistent key: {key}: missing value"))),
        }
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), Fault> {
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(Fault::Key("replace operation value must be object or array".to_owned()));
            }
            self.document = value;
            return Ok(());
        }
        let (container, key) = parent(&mut self.document, path)?;
        match container {
            Value::Array(items) => {
                let index = existing_index(&key, items.len())?;
                if let Some(item) = items.get_mut(index) {
                    *item = value;
                }
            }
            container => {
                container.as_object_mut().map(|members| members.insert(key, value));
            }
        }
        Ok(())
    }

    fn test(&mut self, path: &str, expected: Option<&Value>) -> Result<(), String> {
        let found = match path {
            "" => Some(&self.document),
            path => self.get(path).map_err(|error| match error {
                Fault::Limit(why) => why,
                Fault::NoContainer => {
                    format!("test operation does not apply: is missing path: {path}: missing value")
                }
                Fault::Key(why) => format!("error in test for path: '{path}': {why}"),
            })?,
        };
        let null = Value::Null;
        if found.unwrap_or(&null) == expected.unwrap_or(&null) {
            return Ok(());
        }
        Err(format!("testing value {path} failed{TEST_FAILED}"))
    }
}

/// The number of steps of a path from the document.
fn steps_to(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// The container of a path's last part.
fn parent<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), Fault> {
    let (_, rest) = path.split_once('/').ok_or(Fault::NoContainer)?;
    let (parents, key) = match rest.rsplit_once('/') {
        Some((parents, key)) => (Some(parents), key),
        None => (None, rest),
    };
    let mut container = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let part = decode_key(part);
        container = match container {
            Value::Object(members) => members.get_mut(&part),
            Value::Array(items) => {
                let index = existing_index(&part, items.len());
                index.ok().and_then(|index| items.get_mut(index))
            }
            _ => None,
        }
        .ok_or(Fault::NoContainer)?;
    }
    match container {
        Value::Object(_) | Value::Array(_) => Ok((container, decode_key(key))),
        _ => Err(Fault::NoContainer),
    }
}

pub(super) fn existing_index(key: &str, length: usize) -> Result<usize, String> {
    let index: i64 =
        key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", quote(key)))?;
    let from_start = if index < 0 { index.checked_add_unsigned(length as u64) } else { Some(index) };
    from_start
        .and_then(|index| usize::try_from(index).ok())
        .filter(|index| *index < length)
        .ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

pub(super) fn decode_key(key: &str) -> String {
    // In this order `~01` becomes `~1`, as RFC 6901 requires.
    key.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn operations_apply() {
        let rows = [
            (
                json!({"a": 1}),
                json!([{"op": "add", "path": "/b", "value": 2}]),
                Some(json!({"a": 1, "b": 2})),
            ),
            (json!({"a": 1}), json!([{"op": "add", "path": "/b"}]), Some(json!({"a": 1, "b": null}))),
            (json!({"a": 1}), json!([{"op": "add", "path": "ignored/a", "value": 2}]), Some(json!({"a": 2}))),
            (json!({"a": 1}), json!([{"op": "add", "path": "", "value": 2}]), None),
            (json!({"a": 1}), json!([{"op": "add", "path": "/b/c", "value": 2}]), None),
            (json!({"a": 1}), json!([{"op": "add", "path": "/a/c", "value": 2}]), None),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                Some(json!({"a": [1, 2]})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/0", "value": 2}]),
                Some(json!({"a": [2, 1]})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                Some(json!({"a": [1, 2]})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-1", "value": 2}]),
                Some(json!({"a": [1, 2]})),
            ),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-3", "value": 2}]), None),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/2", "value": 2}]), None),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/x", "value": 2}]), None),
            (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), Some(json!({"a": [1]}))),
            (json!({"a": [1]}), json!([{"op": "remove", "path": "/a/1"}]), None),
            (json!({"a": 1}), json!([{"op": "remove", "path": "/b"}]), None),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "/b", "value": 2}]),
                Some(json!({"a": 1, "b": 2})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "replace", "path": "/a/0", "value": 2}]),
                Some(json!({"a": [2]})),
            ),
            (json!({"a": [1]}), json!([{"op": "replace", "path": "/a/1", "value": 2}]), None),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "", "value": {"b": 2}}]),
                Some(json!({"b": 2})),
            ),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": 2}]), None),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), Some(json!({"b": 1}))),
            (json!({"a": {"b": 1}}), json!([{"op": "move", "from": "/a", "path": "/a/b"}]), None),
            (json!({"a": 1}), json!([{"op": "move", "path": "/b"}]), None),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
                Some(json!({"a": 1, "b": 1})),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "/c", "path": "/b"}]),
                Some(json!({"a": 1, "b": null})),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1}]), Some(json!({"a": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1.0}]), None),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), Some(json!({"a": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": 1}]), None),
            (json!({"a": 1}), json!([{"op": "test", "path": "", "value": {"a": 1}}]), Some(json!({"a": 1}))),
            (json!({"a/b~c": 1}), json!([{"op": "remove", "path": "/a~1b~0c"}]), Some(json!({}))),
            (json!({"~1": 1}), json!([{"op": "remove", "path": "/~01"}]), Some(json!({}))),
            (json!({"a": 1}), json!([{"op": "shuffle", "path": "/a"}]), None),
            (json!({"a": 1}), json!([null]), None),
            (json!({"a": 1}), json!(null), Some(json!({"a": 1}))),
        ];
        for (document, patch, expected) in rows {
            let text = format!("{document} {patch}");
            match (apply(document, &patch, FieldValidation::Warn), expected) {
                (Ok(result), Some(expected)) => assert_eq!(result, expected, "{text}"),
                (Err(PatchError::Unprocessable(_) | PatchError::TestFailed(_)), None) => {}
                (result, expected) => panic!("{text}: {result:?}, not {expected:?}"),
            }
        }
    }

    /// `{"n": {"n": … 1}}`, with this number of levels.
    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!({ "n": inner }))
    }

    #[test]
    fn no_patch_makes_a_document_deeper_than_any_may_be() {
        // Each copy inserts the whole list below itself once more.
        let doubling = |times: usize| -> Value {
            (0..times)
                .map(|step| json!({"op": "copy", "from": "/a", "path": format!("/a{}", "/n".repeat(1 << step))}))
                .collect()
        };
        let refused = Err(PatchError::Unprocessable("exceeded max depth".to_owned()));
        let check = |document: Value, patch: &Value| apply(document, patch, FieldValidation::Warn);
        assert_eq!(check(json!({"a": nested(1)}), &doubling(16)), refused);
        let below = |path: &str, levels: usize| format!("{path}{}", "/n".repeat(levels));
        let add = |path: String, value: Value| json!([{"op": "add", "path": path, "value": value}]);
        assert_eq!(check(nested(200), &add(below("", 200), nested(100))), refused);
        let replace = json!([{"op": "replace", "path": below("", 200), "value": nested(100)}]);
        assert_eq!(check(nested(200), &replace), refused);
        let moved = json!([{"op": "move", "from": "/b", "path": below("/a", 200)}]);
        assert_eq!(check(json!({"a": nested(200), "b": nested(100)}), &moved), refused);
        // Shallow values may move to a deep place, and repeated moves do not add depth.
        let moves: Value = (0..2000)
            .map(|step| match step % 2 {
                0 => json!({"op": "move", "from": "/b", "path": below("/a", 200)}),
                _ => json!({"op": "move", "from": below("/a", 200), "path": "/b"}),
            })
            .collect();
        let document = json!({"a": nested(200), "b": nested(2)});
        let mut after = document.clone();
        after["a"] = (0..199).fold(json!({}), |inner, _| json!({ "n": inner }));
        assert_eq!(check(document, &moves), Ok(after));
    }

    #[test]
    fn the_work_of_all_operations_is_bounded() {
        let list: Value = (0..100_000).map(Value::from).collect();
        let shifts: Value =
            (0..9_999).map(|_| json!({"op": "move", "from": "/list/0", "path": "/list/0"})).collect();
        let refused = Err(PatchError::Unprocessable("the patch's operations are too much work".to_owned()));
        assert_eq!(apply(json!({"list": list}), &shifts, FieldValidation::Warn), refused);
    }

    #[test]
    fn a_document_is_only_replaced_by_an_object_or_a_list() {
        for value in [Value::Null, json!(5), json!("a")] {
            let patch = json!([{"op": "replace", "path": "", "value": value}]);
            let error = apply(json!({}), &patch, FieldValidation::Ignore).unwrap_err();
            assert_eq!(error.to_string(), "replace operation value must be object or array: %!w(<nil>)");
        }
    }

    #[test]
    fn malformed_patches_say_why() {
        let rows = [
            (
                json!({"op": "add"}),
                FieldValidation::Warn,
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                json!({"op": "add"}),
                FieldValidation::Ignore,
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            ),
            (
                json!(["x"]),
                FieldValidation::Ignore,
                "json: cannot unmarshal string into Go value of type jsonpatch.Operation",
            ),
            (
                json!([{"op": 1}]),
                FieldValidation::Strict,
                "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            ),
        ];
        for (patch, validation, message) in rows {
            let error = apply(json!({}), &patch, validation).unwrap_err();
            assert_eq!(error, PatchError::BadRequest(message.to_owned()), "{patch}");
        }
    }

    #[test]
    fn patches_are_bounded() {
        let operation = json!({"op": "test", "path": "/a"});
        let patch = Value::Array(vec![operation; MAX_OPERATIONS + 1]);
        assert_eq!(
            Status::from(apply(json!({}), &patch, FieldValidation::Warn).unwrap_err()).message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
        let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let patch = Value::Array(vec![copy; 64]);
        let result = apply(json!({"a": ["x"]}), &patch, FieldValidation::Warn);
        assert!(matches!(result, Err(PatchError::Unprocessable(_))));
    }

    use crate::Status;
}
