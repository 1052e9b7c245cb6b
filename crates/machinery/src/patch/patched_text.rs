//! The JSON of a patched object, for error messages.
//!
//! Kube-apiserver patches text. It parses only the objects and lists on the way of a patch, and writes those sorted by
//! key; everything else keeps its text, as the encoder or the patch has it: the order of members, the digits of numbers,
//! the escapes in strings.

use super::json_patch::{decode_key, existing_index};
use crate::codec::json::{compact, raw_members, write_string};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The limit on the bytes of both texts, times their depth: a value is read again at each level above it.
const MAX_WORK: usize = 64 << 20;

/// The text that a JSON patch leaves of a document. `None` for a patch that does not apply, and for texts so long and
/// deep that an error message is not worth the work.
///
/// The patch has been applied to the tree of the document, so the bounds of that hold here.
pub fn by_json_patch(document: &str, patch: &str) -> Option<Vec<u8>> {
    check_work(document, patch)?;
    let mut document = Node::Text(document);
    let operations: Vec<&RawValue> = serde_json::from_str(patch).ok()?;
    for operation in operations {
        Operation::read(operation.get())?.apply(&mut document)?;
    }
    Some(document.json())
}

/// The text that a merge patch leaves of a document. `None` as for [`by_json_patch`].
pub fn by_merge_patch(document: &str, patch: &str) -> Option<Vec<u8>> {
    check_work(document, patch)?;
    let (mut document, mut patch) = (Node::Text(document), Node::Text(patch));
    match (document.as_object(), patch.as_object()) {
        (Some(members), Some(changes)) => merge(members, changes),
        _ => {
            patch.prune_nulls();
            document = patch;
        }
    }
    Some(document.json())
}

fn check_work(document: &str, patch: &str) -> Option<()> {
    let work = (document.len() + patch.len()).saturating_mul(depth(document).max(depth(patch)));
    (work <= MAX_WORK).then_some(())
}

/// The greatest number of objects and lists around a value.
fn depth(json: &str) -> usize {
    let (mut depth, mut greatest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                greatest = greatest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    greatest
}

/// A value of a document.
#[derive(Debug, Clone)]
enum Node<'t> {
    /// A text that the patch has not looked into.
    Text(&'t str),
    Object(Members<'t>),
    List(Vec<Node<'t>>),
}

type Members<'t> = BTreeMap<String, Node<'t>>;

impl<'t> Node<'t> {
    fn is_null(&self) -> bool {
        matches!(self, Node::Text(text) if text.trim() == "null")
    }

    /// The members of an object, parsed when they are first asked for.
    fn as_object(&mut self) -> Option<&mut Members<'t>> {
        if let Node::Text(text) = *self
            && let Ok(members) = raw_members(text.as_bytes())
        {
            // Of members with one name the last counts.
            let members = members.into_iter().map(|(name, value)| (name, Node::Text(value.get())));
            *self = Node::Object(members.collect());
        }
        match self {
            Node::Object(members) => Some(members),
            Node::Text(_) | Node::List(_) => None,
        }
    }

    /// The items of a list, parsed when they are first asked for.
    fn as_list(&mut self) -> Option<&mut Vec<Node<'t>>> {
        if let Node::Text(text) = *self
            && let Ok(items) = serde_json::from_str::<Vec<&'t RawValue>>(text)
        {
            *self = Node::List(items.into_iter().map(|item| Node::Text(item.get())).collect());
        }
        match self {
            Node::List(items) => Some(items),
            Node::Text(_) | Node::Object(_) => None,
        }
    }

    /// Removes the null members of all objects in the value.
    fn prune_nulls(&mut self) {
        if let Some(members) = self.as_object() {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(Node::prune_nulls);
        } else if let Some(items) = self.as_list() {
            items.iter_mut().for_each(Node::prune_nulls);
        }
    }

    /// Parses all of the value, as a comparison does.
    fn parse(&mut self) {
        if let Some(members) = self.as_object() {
            members.values_mut().for_each(Node::parse);
        } else if let Some(items) = self.as_list() {
            items.iter_mut().for_each(Node::parse);
        }
    }

    /// The value below this container that a part of a path names.
    fn child(&mut self, part: &str) -> Option<&mut Node<'t>> {
        if self.as_object().is_some() {
            return self.as_object()?.get_mut(part);
        }
        let items = self.as_list()?;
        let index = existing_index(part, items.len()).ok()?;
        items.get_mut(index)
    }

    fn add(&mut self, key: String, value: Node<'t>) -> Option<()> {
        if self.as_object().is_some() {
            self.as_object()?.insert(key, value);
            return Some(());
        }
        let items = self.as_list()?;
        let index = match key.as_str() {
            "-" => items.len(),
            key => existing_index(key, items.len() + 1).ok()?,
        };
        items.insert(index, value);
        Some(())
    }

    fn remove(&mut self, key: &str) -> Option<Node<'t>> {
        if self.as_object().is_some() {
            return self.as_object()?.remove(key);
        }
        let items = self.as_list()?;
        let index = existing_index(key, items.len()).ok()?;
        Some(items.remove(index))
    }

    fn json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Text(text) => out.extend(compact(text.as_bytes())),
            Node::Object(members) => {
                out.push(b'{');
                for (index, (name, member)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(out, name);
                    out.push(b':');
                    member.write(out);
                }
                out.push(b'}');
            }
            Node::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
        }
    }
}

fn merge<'t>(members: &mut Members<'t>, changes: &mut Members<'t>) {
    for (name, mut change) in std::mem::take(changes) {
        if change.is_null() {
            members.remove(&name);
            continue;
        }
        match members.get_mut(&name).filter(|current| !current.is_null()) {
            Some(current) => match (current.as_object(), change.as_object()) {
                (Some(members), Some(changes)) => merge(members, changes),
                // In place of an object, a list keeps its text.
                (Some(_), None) => *current = change,
                (None, _) => {
                    change.prune_nulls();
                    *current = change;
                }
            },
            None => {
                change.prune_nulls();
                members.insert(name, change);
            }
        }
    }
}

/// An operation of a JSON patch.
struct Operation<'t> {
    kind: String,
    path: String,
    from: String,
    value: Node<'t>,
}

impl<'t> Operation<'t> {
    fn read(operation: &'t str) -> Option<Operation<'t>> {
        let mut read = Operation {
            kind: String::new(),
            path: String::new(),
            from: String::new(),
            value: Node::Text("null"),
        };
        for (name, value) in raw_members(operation.as_bytes()).ok()? {
            let text = || serde_json::from_str(value.get()).unwrap_or_default();
            match name.as_str() {
                "op" => read.kind = text(),
                "path" => read.path = text(),
                "from" => read.from = text(),
                "value" => read.value = Node::Text(value.get()),
                _ => {}
            }
        }
        Some(read)
    }

    fn apply(self, document: &mut Node<'t>) -> Option<()> {
        match self.kind.as_str() {
            "replace" if self.path.is_empty() => {
                *document = self.value;
                if document.as_object().is_none() {
                    document.as_list()?;
                }
            }
            "test" if self.path.is_empty() => document.parse(),
            "add" => {
                let (parent, key) = parent(document, &self.path)?;
                parent.add(key, self.value)?;
            }
            "replace" => {
                let (parent, key) = parent(document, &self.path)?;
                match parent.child(&key) {
                    Some(old) => *old = self.value,
                    None => parent.add(key, self.value)?,
                }
            }
            "remove" => {
                let (parent, key) = parent(document, &self.path)?;
                parent.remove(&key)?;
            }
            "move" => {
                let (from, key) = parent(document, &self.from)?;
                let value = from.remove(&key)?;
                let (parent, key) = parent(document, &self.path)?;
                parent.add(key, value)?;
            }
            "copy" => {
                let (from, key) = parent(document, &self.from)?;
                let value = from.child(&key).cloned().unwrap_or(Node::Text("null"));
                let (parent, key) = parent(document, &self.path)?;
                parent.add(key, value)?;
            }
            "test" => {
                let (parent, key) = parent(document, &self.path)?;
                if let Some(found) = parent.child(&key) {
                    found.parse();
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// The container of the last part of a path, and that part.
fn parent<'d, 't>(document: &'d mut Node<'t>, path: &str) -> Option<(&'d mut Node<'t>, String)> {
    let (_, path) = path.split_once('/')?;
    let (parents, key) = match path.rsplit_once('/') {
        Some((parents, key)) => (Some(parents), key),
        None => (None, path),
    };
    let mut container = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        container = container.child(&decode_key(part))?;
    }
    Some((container, decode_key(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        r#"{"kind":"Pod","b":{"z":1,"y":[{"d":1,"c":2},{"f":3,"e":4}]},"a":{"q":1,"p":2}}"#;

    #[test]
    fn a_json_patch_sorts_what_is_on_its_way() {
        let rows = [
            (
                r#"[{"op":"add","path":"/b/x","value":{"n":1.0, "m":"\u00e9<"}}]"#,
                r#"{"a":{"q":1,"p":2},"b":{"x":{"n":1.0,"m":"\u00e9\u003c"},"y":[{"d":1,"c":2},{"f":3,"e":4}],"z":1},"kind":"Pod"}"#,
            ),
            (
                r#"[{"op":"replace","path":"/b/y/1/e","value":9223372036854775808}]"#,
                r#"{"a":{"q":1,"p":2},"b":{"y":[{"d":1,"c":2},{"e":9223372036854775808,"f":3}],"z":1},"kind":"Pod"}"#,
            ),
            (
                r#"[{"op":"move","from":"/b/y/0","path":"/c"},{"op":"copy","from":"/b/y/0","path":"/b/y/-"}]"#,
                r#"{"a":{"q":1,"p":2},"b":{"y":[{"f":3,"e":4},{"f":3,"e":4}],"z":1},"c":{"d":1,"c":2},"kind":"Pod"}"#,
            ),
            (
                r#"[{"op":"test","path":"/a","value":{"p":2,"q":1}},{"op":"remove","path":"/b"}]"#,
                r#"{"a":{"p":2,"q":1},"kind":"Pod"}"#,
            ),
            (
                r#"[{"op":"replace","path":"","value":{"z":{"b":1,"a":2},"y":0}}]"#,
                r#"{"y":0,"z":{"b":1,"a":2}}"#,
            ),
        ];
        for (patch, expected) in rows {
            let found = by_json_patch(DOCUMENT, patch).map(String::from_utf8);
            assert_eq!(found, Some(Ok(expected.to_owned())), "{patch}");
        }
        assert_eq!(by_json_patch(DOCUMENT, r#"[{"op":"remove","path":"/none/x"}]"#), None);
    }

    #[test]
    fn a_merge_patch_sorts_objects_that_it_adds() {
        let rows = [
            (r#"{}"#, r#"{"a":{"q":1,"p":2},"b":{"z":1,"y":[{"d":1,"c":2},{"f":3,"e":4}]},"kind":"Pod"}"#),
            (
                r#"{"b":{"y":[{"d":1e3,"c":null,"a":"\u00e9"}]},"a":{}}"#,
                r#"{"a":{"p":2,"q":1},"b":{"y":[{"a":"\u00e9","d":1e3}],"z":1},"kind":"Pod"}"#,
            ),
            // In place of an object, a list keeps its text.
            (r#"{"b":[{"d":1,"c":null}],"a":null}"#, r#"{"b":[{"d":1,"c":null}],"kind":"Pod"}"#),
            (r#"{"kind":{"b":1,"a":null},"a":5,"b":null}"#, r#"{"a":5,"kind":{"b":1}}"#),
        ];
        for (patch, expected) in rows {
            let found = by_merge_patch(DOCUMENT, patch).map(String::from_utf8);
            assert_eq!(found, Some(Ok(expected.to_owned())), "{patch}");
        }
    }

    #[test]
    fn long_and_deep_texts_are_not_written() {
        let nested = |depth: usize, length: usize| {
            format!("{}\"{}\"{}", r#"{"a":"#.repeat(depth), "\\\"[".repeat(length / 3), "}".repeat(depth))
        };
        assert_eq!(depth(&nested(7, 30)), 7);
        assert!(by_merge_patch(DOCUMENT, &nested(20, 1_000)).is_some());
        assert!(by_merge_patch(DOCUMENT, &nested(2, 3_000_000)).is_some());
        assert_eq!(by_merge_patch(DOCUMENT, &nested(200, 2_900_000)), None);
        let operations = format!(r#"[{{"op":"add","path":"/c","value":{}}}]"#, nested(200, 2_900_000));
        assert_eq!(by_json_patch(DOCUMENT, &operations), None);
    }
}
